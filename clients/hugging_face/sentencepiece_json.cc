#include "clients/hugging_face/sentencepiece_json.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/sentencepiece/piece_trie.h"
#include "storage/dataset/sentencepiece/segmenter.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

using nlohmann::json;

std::string SpaceOf(const SentencePieceModel& model) {
  return std::string(model.escape_whitespaces ? kSpaceSymbol : " ");
}

json Sequence(const char* items, json list) {
  if (list.empty()) return nullptr;
  return {{"type", "Sequence"}, {items, std::move(list)}};
}

json Replace(const char* kind, absl::string_view pattern,
             absl::string_view by) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", by}};
}

json NormalizerJson(const SentencePieceModel& model) {
  json list = json::array();
  if (!model.precompiled_charsmap.empty()) {
    list.push_back({{"type", "Precompiled"},
                    {"precompiled_charsmap",
                     absl::Base64Escape(model.precompiled_charsmap)}});
  }
  if (model.remove_extra_whitespaces) {
    // A symbol at the end that the text itself has goes, too.
    list.push_back(
        Replace("Regex", absl::StrCat("\\A +|[ ", kSpaceSymbol, "]+\\z"), ""));
    list.push_back(Replace("Regex", " {2,}", " "));
  }
  if (model.add_dummy_prefix) {
    list.push_back({{"type", "Prepend"}, {"prepend", SpaceOf(model)}});
  }
  if (model.escape_whitespaces) {
    list.push_back(Replace("String", " ", kSpaceSymbol));
  }
  return Sequence("normalizers", std::move(list));
}

json DecoderJson(const SentencePieceModel& model) {
  json list = json::array();
  if (model.escape_whitespaces) {
    list.push_back(Replace("String", kSpaceSymbol, " "));
  }
  list.push_back({{"type", "ByteFallback"}});
  list.push_back({{"type", "Fuse"}});
  if (model.add_dummy_prefix) {
    list.push_back(
        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return Sequence("decoders", std::move(list));
}

// As a regular expression.
std::string Quoted(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_ispunct(static_cast<unsigned char>(c))) out += '\\';
    out += c;
  }
  return out;
}

std::vector<absl::string_view> Characters(absl::string_view text) {
  std::vector<absl::string_view> characters;
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(1, CharacterBytes(text));
    characters.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return characters;
}

json IsolatedJson(const std::vector<std::string>& patterns) {
  if (patterns.empty()) return nullptr;
  return {{"type", "Split"},
          {"pattern", {{"Regex", absl::StrJoin(patterns, "|")}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

// Pieces that no text becomes.
bool IsOutsideOfTexts(const SentencePiece& piece) {
  return piece.type != PieceType::kNormal &&
         piece.type != PieceType::kUserDefined;
}

// Where a character of such a piece, "<" of "</s>", is none of the vocabulary,
// the piece would be chosen in place of unknown characters. Cutting the text
// there prevents it and is no other change: no piece has the character.
std::vector<std::string> UnknownsToIsolate(const SentencePieceModel& model) {
  std::set<absl::string_view> known;
  for (const SentencePiece& piece : model.pieces) {
    if (IsOutsideOfTexts(piece)) continue;
    for (const absl::string_view c : Characters(piece.text)) known.insert(c);
  }
  std::set<std::string> patterns;
  for (const SentencePiece& piece : model.pieces) {
    if (!IsOutsideOfTexts(piece)) continue;
    const absl::string_view text = piece.text;
    // The first run of unknown characters: they may be one token.
    size_t begin = 0, end = 0;
    for (const absl::string_view c : Characters(text)) {
      const size_t at = c.data() - text.data();
      if (known.count(c) == 0) {
        if (end == 0) begin = at;
        if (end == 0 || end == at) end = at + c.size();
      }
    }
    if (end == 0) continue;
    const std::string run = Quoted(text.substr(begin, end - begin));
    if (model.byte_fallback) {
      patterns.insert(run);  // each is bytes on its own
      continue;
    }
    const std::string before = Quoted(text.substr(0, begin));
    const std::string after = Quoted(text.substr(end));
    patterns.insert(absl::StrCat(
        before.empty() ? "" : absl::StrCat("(?<=", before, ")"), run,
        after.empty() ? "" : absl::StrCat("(?=", after, ")")));
  }
  return {patterns.begin(), patterns.end()};
}

json UnigramJson(const SentencePieceModel& model) {
  float least = std::numeric_limits<float>::max();
  float most = std::numeric_limits<float>::lowest();
  size_t longest = 1;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == PieceType::kNormal) {
      least = std::min(least, piece.score);
      most = std::max(most, piece.score);
    } else {
      longest = std::max(longest, piece.text.size());
    }
  }
  // Below any way to spell it by characters that are pieces.
  const double never = std::min<double>(least, 0) * (longest + 1) - 100;
  json vocabulary = json::array();
  for (const SentencePiece& piece : model.pieces) {
    double score = never;
    if (piece.type == PieceType::kNormal) score = piece.score;
    if (piece.type == PieceType::kUserDefined) {
      score = piece.text.size() * static_cast<double>(most) - 0.1;
    }
    vocabulary.push_back({piece.text, score});
  }
  return {{"type", "Unigram"},
          {"unk_id", model.unknown_id},
          {"byte_fallback", model.byte_fallback},
          {"vocab", std::move(vocabulary)}};
}

// [left, right], the highest score first: what two pieces become one.
json MergesJson(const SentencePieceModel& model) {
  std::set<absl::string_view> pieces;
  std::vector<const SentencePiece*> order;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    pieces.insert(piece.text);
    order.push_back(&piece);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const SentencePiece* a, const SentencePiece* b) {
                     return a->score > b->score;
                   });
  json merges = json::array();
  for (const SentencePiece* piece : order) {
    const absl::string_view text = piece->text;
    for (const absl::string_view c : Characters(text)) {
      const size_t at = c.data() - text.data();
      const absl::string_view left = text.substr(0, at);
      const absl::string_view right = text.substr(at);
      if (pieces.count(left) == 0 || pieces.count(right) == 0) continue;
      merges.push_back({left, right});
    }
  }
  return merges;
}

std::vector<std::string> UserDefined(const SentencePieceModel& model) {
  std::vector<std::string> texts;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == PieceType::kUserDefined) {
      texts.push_back(Quoted(piece.text));
    }
  }
  // The longest counts.
  std::stable_sort(texts.begin(), texts.end(),
                   [](const std::string& a, const std::string& b) {
                     return a.size() > b.size();
                   });
  return texts;
}

// With ignore_merges, a stretch of text that spells a key of the vocabulary is
// its id at once: right for a piece that the user defined, wrong for "</s>"
// beside it. Such a stretch is cut at the first place where the model itself
// cuts it. No merge reaches over that place, so the ids are the model's.
std::vector<std::string> SpellingsToCut(const SentencePieceModel& model) {
  PieceTrie user_defined;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type != PieceType::kUserDefined) continue;
    user_defined.Add(model.pieces[id].text, static_cast<int32_t>(id));
  }
  const std::unique_ptr<Segmenter> segmenter =
      MakeBpeSegmenter(model, user_defined);
  std::map<std::string, std::vector<std::string>> ends;  // by beginning
  for (const SentencePiece& piece : model.pieces) {
    const absl::string_view text = piece.text;
    size_t cut = 0;
    int32_t before = -1;
    for (const TextSegment& segment : segmenter->Cut(text)) {
      const bool is_run = before == model.unknown_id && segment.id == before &&
                          !model.byte_fallback;
      if (before >= 0 && !is_run) {
        cut = segment.text.data() - text.data();
        break;
      }
      before = segment.id;
    }
    if (cut == 0) continue;
    ends[Quoted(text.substr(0, cut))].push_back(Quoted(text.substr(cut)));
  }
  std::vector<std::string> patterns;
  for (const auto& [beginning, rest] : ends) {
    patterns.push_back(absl::StrCat(
        "\\A", beginning, "(?=(?:", absl::StrJoin(rest, "|"), ")\\z)"));
  }
  return patterns;
}

json PreTokenizerJson(const SentencePieceModel& model) {
  if (model.kind == SegmentationKind::kUnigram) {
    return IsolatedJson(UnknownsToIsolate(model));
  }
  const std::vector<std::string> user_defined = UserDefined(model);
  if (user_defined.empty()) return nullptr;
  json list = json::array({IsolatedJson(user_defined)});
  const std::vector<std::string> cut = SpellingsToCut(model);
  if (!cut.empty()) list.push_back(IsolatedJson(cut));
  return Sequence("pretokenizers", std::move(list));
}

json BpeJson(const SentencePieceModel& model) {
  json vocabulary = json::object();
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    vocabulary[model.pieces[id].text] = id;
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", model.pieces[model.unknown_id].text},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", model.byte_fallback},
          // One that the user defined is isolated and is then itself.
          {"ignore_merges", !UserDefined(model).empty()},
          {"vocab", std::move(vocabulary)},
          {"merges", MergesJson(model)}};
}

}  // namespace

json SentencePieceJson(const SentencePieceModel& model) {
  const bool unigram = model.kind == SegmentationKind::kUnigram;
  json added = json::array();
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.type != PieceType::kControl &&
        piece.type != PieceType::kUnknown) {
      continue;
    }
    added.push_back({{"id", id},
                     {"content", piece.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", NormalizerJson(model)},
          {"pre_tokenizer", PreTokenizerJson(model)},
          {"post_processor", nullptr},
          {"decoder", DecoderJson(model)},
          {"model", unigram ? UnigramJson(model) : BpeJson(model)}};
}

}  // namespace troupe
