#include "storage/dataset/hugging_face/encoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/utf8.h"

namespace troupe {

class Encoder::Loan {
 public:
  explicit Loan(const Encoder& encoder) : encoder_(encoder) {
    absl::MutexLock lock(&encoder_.mutex_);
    if (!encoder_.idle_.empty()) {
      work_ = std::move(encoder_.idle_.back());
      encoder_.idle_.pop_back();
    } else {
      work_ = std::make_unique<Workspace>();
    }
  }
  ~Loan() {
    absl::MutexLock lock(&encoder_.mutex_);
    encoder_.idle_.push_back(std::move(work_));
  }
  Loan(const Loan&) = delete;
  Workspace& operator*() { return *work_; }

 private:
  const Encoder& encoder_;
  std::unique_ptr<Workspace> work_;
};

absl::StatusOr<std::unique_ptr<Encoder>> Encoder::Create(
    TokenizerDescription description) {
  std::unique_ptr<Encoder> encoder(new Encoder(std::move(description)));
  PatternScratch patterns;
  NormalizerScratch scratch;
  for (const AddedToken& token : encoder->description_.added) {
    encoder->strips_ |= token.strip_left || token.strip_right;
    if (!token.normalized) {
      encoder->of_text_.Add(token.content, token);
      continue;
    }
    ASSIGN_OR_RETURN(
        const absl::string_view normalized,
        encoder->description_.normalizer.Normalize(
            token.content, /*continues=*/false, patterns, scratch));
    encoder->of_normalized_.Add(normalized, token);
  }
  return encoder;
}

absl::Status Encoder::Encode(absl::string_view text, bool continues,
                             std::vector<int32_t>& ids) const {
  Loan work(*this);
  std::string storage;
  text = ValidText(text, storage);
  absl::Status status;
  of_text_.Split(text, [&](size_t begin, size_t end, const AddedToken* token) {
    if (token != nullptr) {
      ids.push_back(token->id);
    } else if (status.ok()) {
      status = EncodeSegment(text.substr(begin, end - begin),
                             {.at_start = begin == 0 && !continues,
                              .continues = begin == 0 && continues},
                             *work, ids);
    }
  });
  return status;
}

absl::Status Encoder::EncodeSegment(absl::string_view text, TextPlace place,
                                    Workspace& work,
                                    std::vector<int32_t>& ids) const {
  ASSIGN_OR_RETURN(const absl::string_view normalized,
                   description_.normalizer.Normalize(
                       text, place.continues, work.patterns, work.normalizer));
  absl::Status status;
  of_normalized_.Split(normalized, [&](size_t begin, size_t end,
                                       const AddedToken* token) {
    if (token != nullptr) {
      ids.push_back(token->id);
    } else if (status.ok()) {
      status = EncodeNormalized(normalized.substr(begin, end - begin),
                                {.at_start = begin == 0 && place.at_start,
                                 .continues = begin == 0 && place.continues},
                                work, ids);
    }
  });
  return status;
}

absl::Status Encoder::EncodeNormalized(absl::string_view text, TextPlace place,
                                       Workspace& work,
                                       std::vector<int32_t>& ids) const {
  ASSIGN_OR_RETURN(const SplitText* const split,
                   description_.pre_tokenizer.Split(text, place, work.patterns,
                                                    work.first, work.second));
  for (const TextSpan& span : split->spans) {
    const absl::string_view piece =
        split->text.substr(span.begin, span.end - span.begin);
    const bool is_word = piece.size() <= WordCache::kWordBytesMax;
    if (is_word && work.words.Find(piece, ids)) continue;
    const size_t before = ids.size();
    RETURN_IF_ERROR(description_.model->Tokenize(piece, work.model, ids));
    if (is_word) {
      work.words.Add(piece, absl::MakeConstSpan(ids).subspan(before));
    }
  }
  return absl::OkStatus();
}

// Looks for the last place at which the ids of both parts are those of the
// whole, whatever follows the text.
class Encoder::CutSearch {
 public:
  CutSearch(const Encoder& encoder, Workspace& work, absl::string_view text)
      : encoder_(encoder), work_(work), text_(text) {
    const bool is_normalized = !encoder_.description_.normalizer.empty();
    // A token's normal form may be spelled by more bytes.
    window_ = 16 + std::max(encoder_.of_text_.longest(),
                            encoder_.of_normalized_.longest() *
                                (is_normalized ? 16 : 1));
  }

  // The last at `first` or later; 0: none.
  size_t Last(size_t first) {
    for (size_t at = Known(); at-- > std::max<size_t>(first, 1);) {
      const absl::optional<Seam> seam = SeamAt(at);
      if (seam.has_value() && MayCut(*seam) && !TouchesToken(at)) return at;
    }
    return 0;
  }

  // Places before this byte are decided, whatever follows.
  size_t Known() const {
    return text_.size() - std::min(text_.size(), window_);
  }

 private:
  // The characters there, where all three are whole.
  absl::optional<Seam> SeamAt(size_t at) const {
    size_t before = at - 1;
    while (before > 0 && at - before < 4 && (text_[before] & 0xC0) == 0x80) {
      --before;
    }
    if (CharacterBytes(text_.substr(before, 4)) != at - before) {
      return absl::nullopt;
    }
    const size_t after_bytes = CharacterBytes(text_.substr(at, 4));
    const size_t next = at + after_bytes;
    if (after_bytes == 0 || CharacterBytes(text_.substr(next, 4)) == 0) {
      return absl::nullopt;
    }
    return Seam{.before = CharacterAt(text_, before).code,
                .after = CharacterAt(text_, at).code,
                .next = CharacterAt(text_, next).code};
  }

  bool MayCut(const Seam& seam) {
    // Three characters of 21 bits each.
    const uint64_t key = static_cast<uint64_t>(seam.before) << 42 |
                         static_cast<uint64_t>(seam.after) << 21 | seam.next;
    const auto [known, is_new] = decided_.try_emplace(key, false);
    if (is_new) known->second = Decide(seam);
    return known->second;
  }

  bool Decide(const Seam& raw) {
    const TokenizerDescription& description = encoder_.description_;
    absl::optional<Seam> seam =
        description.normalizer.SeamAfter(raw, work_.patterns);
    if (!seam.has_value()) return false;
    if (encoder_.strips_ &&
        (IsWhitespace(raw.before) || IsWhitespace(seam->before))) {
      return false;
    }
    const SeamKind kind = description.pre_tokenizer.At(*seam, work_.patterns);
    if (kind == SeamKind::kBoundary) return true;
    return kind == SeamKind::kLocal && description.model->MayCut(*seam);
  }

  // An added token that ends or begins there is asked about its neighbours.
  bool TouchesToken(size_t at) {
    size_t begin = at - std::min(at, window_);
    while (begin < at && (text_[begin] & 0xC0) == 0x80) ++begin;
    std::string storage[2];
    const absl::string_view left =
        ValidText(text_.substr(begin, at - begin), storage[0]);
    const absl::string_view right =
        ValidText(text_.substr(at, window_), storage[1]);
    if (encoder_.of_text_.Touches(absl::StrCat(left, right), left.size())) {
      return true;
    }
    if (encoder_.of_normalized_.empty()) return false;
    std::string both;
    size_t middle = 0;
    for (const absl::string_view part : {left, right}) {
      const auto normalized = encoder_.description_.normalizer.Normalize(
          part, /*continues=*/begin > 0 || part.data() != left.data(),
          work_.patterns, work_.normalizer);
      const bool is_left = part.data() == left.data();
      // So short that a token may reach out of it.
      if (!normalized.ok() ||
          (normalized->size() < encoder_.of_normalized_.longest() &&
           !(is_left && begin == 0))) {
        return true;
      }
      both.append(normalized->data(), normalized->size());
      if (is_left) middle = both.size();
    }
    return encoder_.of_normalized_.Touches(both, middle);
  }

  const Encoder& encoder_;
  Workspace& work_;
  const absl::string_view text_;
  size_t window_ = 0;
  absl::flat_hash_map<uint64_t, bool> decided_;
};

size_t Encoder::CutPoint(absl::string_view text, size_t& searched) const {
  Loan work(*this);
  CutSearch search(*this, *work, text);
  const size_t cut = search.Last(searched);
  if (cut == 0) searched = std::max(searched, search.Known());
  return cut;
}

}  // namespace troupe
