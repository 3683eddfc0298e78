#include <algorithm>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "storage/dataset/sentencepiece/segmenter.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

class BpeSegmenter final : public Segmenter {
 public:
  BpeSegmenter(const SentencePieceModel& model, const PieceTrie& user_defined)
      : model_(model), user_defined_(user_defined) {
    for (size_t id = 0; id < model.pieces.size(); ++id) {
      const SentencePiece& piece = model.pieces[id];
      if (piece.type == PieceType::kNormal ||
          piece.type == PieceType::kUserDefined ||
          piece.type == PieceType::kUnused) {
        ids_.emplace(piece.text, static_cast<int32_t>(id));
      }
    }
  }

  std::vector<TextSegment> Cut(absl::string_view text) const override;

 private:
  // Symbols are a doubly linked list in an array; a merged one is its left
  // half, the right half becomes empty.
  struct Symbol {
    absl::string_view text;
    int64_t before = -1;
    int64_t after = -1;
    bool frozen = false;  // user-defined: never merged
  };
  struct Merge {
    float score;
    int64_t left;
    int64_t right;
    size_t bytes;
    // The highest score comes first, of equals the leftmost.
    bool operator<(const Merge& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };
  // How a piece that must not be used came about.
  using Halves =
      absl::flat_hash_map<absl::string_view,
                          std::pair<absl::string_view, absl::string_view>>;
  struct Work {
    std::vector<Symbol> symbols;
    std::priority_queue<Merge> merges;
    Halves unused;
  };

  std::vector<Symbol> Split(absl::string_view text) const;
  void Propose(int64_t left, int64_t right, Work& work) const;
  void MergeAll(Work& work) const;
  void Emit(absl::string_view text, const Halves& unused,
            std::vector<TextSegment>& out) const;

  const SentencePieceModel& model_;
  const PieceTrie& user_defined_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // into the model
};

std::vector<BpeSegmenter::Symbol> BpeSegmenter::Split(
    absl::string_view text) const {
  std::vector<Symbol> symbols;
  while (!text.empty()) {
    Symbol symbol;
    size_t bytes = user_defined_.LongestPrefix(text);
    symbol.frozen = bytes > 0;
    if (bytes == 0) bytes = std::max<size_t>(1, CharacterBytes(text));
    symbol.text = text.substr(0, bytes);
    text.remove_prefix(bytes);
    const int64_t index = static_cast<int64_t>(symbols.size());
    symbol.before = index - 1;
    symbol.after = text.empty() ? -1 : index + 1;
    symbols.push_back(symbol);
  }
  return symbols;
}

void BpeSegmenter::Propose(int64_t left, int64_t right, Work& work) const {
  if (left < 0 || right < 0) return;
  const Symbol& a = work.symbols[left];
  const Symbol& b = work.symbols[right];
  if (a.frozen || b.frozen) return;
  const absl::string_view both(a.text.data(), a.text.size() + b.text.size());
  const auto found = ids_.find(both);
  if (found == ids_.end()) return;
  const SentencePiece& piece = model_.pieces[found->second];
  work.merges.push({piece.score, left, right, both.size()});
  if (piece.type == PieceType::kUnused) work.unused[both] = {a.text, b.text};
}

void BpeSegmenter::MergeAll(Work& work) const {
  std::vector<Symbol>& symbols = work.symbols;
  while (!work.merges.empty()) {
    const Merge merge = work.merges.top();
    work.merges.pop();
    Symbol& left = symbols[merge.left];
    Symbol& right = symbols[merge.right];
    // One of them was merged with another meanwhile.
    if (left.text.empty() || right.text.empty() ||
        left.text.size() + right.text.size() != merge.bytes) {
      continue;
    }
    left.text = {left.text.data(), merge.bytes};
    left.after = right.after;
    if (right.after >= 0) symbols[right.after].before = merge.left;
    right.text = {};
    Propose(left.before, merge.left, work);
    Propose(merge.left, left.after, work);
  }
}

void BpeSegmenter::Emit(absl::string_view text, const Halves& unused,
                        std::vector<TextSegment>& out) const {
  const auto found = ids_.find(text);
  const int32_t id = found == ids_.end() ? model_.unknown_id : found->second;
  const auto halves = unused.find(text);
  if (model_.pieces[id].type != PieceType::kUnused || halves == unused.end()) {
    out.push_back({text, id});
    return;
  }
  Emit(halves->second.first, unused, out);
  Emit(halves->second.second, unused, out);
}

std::vector<TextSegment> BpeSegmenter::Cut(absl::string_view text) const {
  Work work{.symbols = Split(text), .merges = {}, .unused = {}};
  const int64_t count = static_cast<int64_t>(work.symbols.size());
  for (int64_t i = 1; i < count; ++i) Propose(i - 1, i, work);
  MergeAll(work);
  std::vector<TextSegment> segments;
  for (int64_t i = count == 0 ? -1 : 0; i >= 0; i = work.symbols[i].after) {
    Emit(work.symbols[i].text, work.unused, segments);
  }
  return segments;
}

}  // namespace

std::unique_ptr<Segmenter> MakeBpeSegmenter(const SentencePieceModel& model,
                                            const PieceTrie& user_defined) {
  return std::make_unique<BpeSegmenter>(model, user_defined);
}

}  // namespace troupe
