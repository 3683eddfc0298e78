#include "storage/dataset/sentencepiece/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/dataset/sentencepiece/normalizer.h"
#include "storage/dataset/sentencepiece/segmenter.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(SentencePieceModel model)
      : model_(std::move(model)) {}

  absl::Status Initialize(absl::string_view bytes);

  std::string name() const override { return name_; }
  uint64_t vocab_size() const override { return model_.pieces.size(); }
  std::optional<int32_t> eos_id() const override { return eos_id_; }

  absl::Status Encode(absl::string_view text,
                      std::vector<int32_t>& ids) const override {
    return EncodePart(text, Normalizer::Part::kBeginning, ids);
  }
  absl::Status EncodeLater(absl::string_view text,
                           std::vector<int32_t>& ids) const override {
    return EncodePart(text, Normalizer::Part::kLater, ids);
  }
  size_t CutPoint(absl::string_view text, size_t& searched) const override;
  absl::StatusOr<std::string> TokenText(int32_t id) const override;
  absl::StatusOr<std::string> Decode(
      absl::Span<const int32_t> ids) const override;

 private:
  absl::Status EncodePart(absl::string_view text, Normalizer::Part part,
                          std::vector<int32_t>& ids) const;
  void LearnSeams(const SentencePiece& piece);
  bool MayCut(absl::string_view text, size_t at) const;

  const SentencePieceModel model_;
  std::string name_;
  std::optional<int32_t> eos_id_;
  PieceTrie user_defined_;
  std::vector<int32_t> byte_ids_;   // by byte, where it has byte_fallback
  std::vector<std::string> texts_;  // by id: what TokenText gives
  // Characters that are pieces, and pairs of them, of which the second is a
  // space or a line's end, that stand side by side in a piece.
  absl::flat_hash_set<std::string> characters_;
  absl::flat_hash_set<std::string> joined_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<Segmenter> segmenter_;
};

absl::Status SentencePieceTokenizer::Initialize(absl::string_view bytes) {
  name_ = SentencePieceTokenizerName(bytes);
  for (size_t i = 0; i < model_.pieces.size(); ++i) {
    const SentencePiece& piece = model_.pieces[i];
    const int32_t id = static_cast<int32_t>(i);
    std::string text;
    if (piece.type == PieceType::kUnknown) {
      text = model_.unknown_surface;
    } else if (piece.type != PieceType::kControl) {
      text = absl::StrReplaceAll(piece.text, {{kSpaceSymbol, " "}});
    }
    texts_.push_back(std::move(text));
    LearnSeams(piece);
    if (piece.type == PieceType::kUserDefined) {
      user_defined_.Add(piece.text, id);
    }
    if (piece.type == PieceType::kControl && piece.text == model_.eos_piece) {
      eos_id_ = id;
    }
  }
  if (model_.byte_fallback) {
    byte_ids_ = BytePieces(model_);
    for (int byte = 0; byte < 256; ++byte) {
      texts_[byte_ids_[byte]] = std::string(1, static_cast<char>(byte));
    }
  }
  ASSIGN_OR_RETURN(Normalizer normalizer,
                   Normalizer::Create(model_, user_defined_));
  normalizer_ = std::make_unique<Normalizer>(std::move(normalizer));
  segmenter_ = model_.kind == SegmentationKind::kUnigram
                   ? MakeUnigramSegmenter(model_)
                   : MakeBpeSegmenter(model_, user_defined_);
  return absl::OkStatus();
}

absl::Status SentencePieceTokenizer::EncodePart(
    absl::string_view text, Normalizer::Part part,
    std::vector<int32_t>& ids) const {
  const std::string normalized = normalizer_->Normalize(text, part);
  bool after_unknown = false;
  for (const TextSegment& segment : segmenter_->Cut(normalized)) {
    const bool unknown = segment.id == model_.unknown_id;
    if (unknown && model_.byte_fallback) {
      for (const char byte : segment.text) {
        ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
      }
    } else if (!unknown || !after_unknown) {
      // A run of unknown characters is one unknown token.
      ids.push_back(segment.id);
    }
    after_unknown = unknown;
  }
  return absl::OkStatus();
}

void SentencePieceTokenizer::LearnSeams(const SentencePiece& piece) {
  if (piece.type != PieceType::kNormal &&
      piece.type != PieceType::kUserDefined &&
      piece.type != PieceType::kUnused) {
    return;
  }
  absl::string_view before;
  for (absl::string_view rest = piece.text; !rest.empty();) {
    const absl::string_view character =
        rest.substr(0, std::max<size_t>(1, CharacterBytes(rest)));
    rest.remove_prefix(character.size());
    if (before.empty() && rest.empty()) characters_.emplace(character);
    if (!before.empty() &&
        (character == kSpaceSymbol || character == " " || character == "\n")) {
      joined_.insert(absl::StrCat(before, character));
    }
    before = character;
  }
}

// Whether the ids of both parts are those of the whole.
bool SentencePieceTokenizer::MayCut(absl::string_view text, size_t at) const {
  const absl::optional<Normalizer::Seam> seam = normalizer_->SeamAt(text, at);
  if (!seam.has_value()) return false;
  const auto& [before, after] = *seam;
  if (after != kSpaceSymbol && after != " " && after != "\n") return false;
  if (joined_.contains(absl::StrCat(before, after))) return false;
  // A run of unknown characters is one token.
  return model_.byte_fallback || characters_.contains(before) ||
         characters_.contains(after);
}

// The last line's end, or, where none will do, the last space.
size_t SentencePieceTokenizer::CutPoint(absl::string_view text,
                                        size_t& searched) const {
  const size_t first = std::max<size_t>(1, searched);
  for (const char separator : {'\n', ' '}) {
    for (size_t at = text.size(); at-- > first;) {
      if (text[at] == separator && MayCut(text, at)) return at;
    }
  }
  const size_t looks_ahead = normalizer_->LongestEntry() - 1;
  searched =
      std::max(searched, text.size() - std::min(text.size(), looks_ahead));
  return 0;
}

absl::StatusOr<std::string> SentencePieceTokenizer::TokenText(
    int32_t id) const {
  if (id >= 0 && static_cast<size_t>(id) < texts_.size()) return texts_[id];
  return absl::InvalidArgumentError(absl::StrCat("tokenizer ", name_, ": id ",
                                                 id, " is not within 0 to ",
                                                 texts_.size() - 1));
}

absl::StatusOr<std::string> SentencePieceTokenizer::Decode(
    absl::Span<const int32_t> ids) const {
  // At the beginning stands the space that Encode put there.
  bool at_beginning =
      model_.add_dummy_prefix || model_.remove_extra_whitespaces;
  std::string text;
  for (const int32_t id : ids) {
    ASSIGN_OR_RETURN(const std::string token, TokenText(id));
    absl::string_view piece = token;
    const PieceType type = model_.pieces[id].type;
    if (type == PieceType::kByte || type == PieceType::kUnknown) {
      at_beginning = false;
    }
    const bool had_space = at_beginning && absl::ConsumePrefix(&piece, " ");
    while (had_space && model_.remove_extra_whitespaces &&
           absl::ConsumePrefix(&piece, " ")) {
    }
    text.append(piece.data(), piece.size());
    at_beginning &=
        piece.empty() && (!had_space || model_.remove_extra_whitespaces);
  }
  return text;
}

}  // namespace

std::string SentencePieceTokenizerName(absl::string_view model) {
  return absl::StrFormat("sentencepiece:%08x", Crc32c(model));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeSentencePieceTokenizer(
    absl::string_view bytes) {
  ASSIGN_OR_RETURN(SentencePieceModel model, ParseSentencePieceModel(bytes));
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(std::move(model));
  RETURN_IF_ERROR(tokenizer->Initialize(bytes));
  return tokenizer;
}

}  // namespace troupe
