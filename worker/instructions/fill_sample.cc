#include "worker/instructions/fill_sample.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

void FillDocuments(const TokenSample& sample, int /*ahead*/, void* to) {
  std::copy(sample.documents.begin(), sample.documents.end(),
            static_cast<int32_t*>(to));
}

// Whether both are within the window, and of one document.
bool AreTogether(const TokenSample& sample, size_t a, size_t b) {
  return b < sample.tokens.size() &&
         (sample.documents.empty() ||
          sample.documents[a] == sample.documents[b]);
}

// Past the end of the window or document, the last token there.
void FillTokens(const TokenSample& sample, int ahead, void* to) {
  auto* const tokens = static_cast<int32_t*>(to);
  for (size_t t = 0; t < sample.tokens.size(); ++t) {
    size_t from = std::min(t + ahead, sample.tokens.size() - 1);
    while (!AreTogether(sample, t, from)) --from;
    tokens[t] = sample.tokens[from];
  }
}

// Past the end none counts.
void FillTargets(const TokenSample& sample, int ahead, void* to) {
  auto* const targets = static_cast<int32_t*>(to);
  for (size_t t = 0; t < sample.targets.size(); ++t) {
    const size_t from = t + ahead;
    targets[t] = AreTogether(sample, t, from) ? sample.targets[from] : -1;
  }
}

void FillPositions(const TokenSample& sample, int /*ahead*/, void* to) {
  auto* const positions = static_cast<int32_t*>(to);
  for (size_t t = 0; t < sample.tokens.size(); ++t) {
    const int32_t begin = sample.documents.empty() ? 0 : sample.documents[t];
    positions[t] = static_cast<int32_t>(t) - begin;
  }
}

// The bytes of one index of a dim: of a whole sample, and of the rank's.
struct EachBytes {
  int64_t whole = 0;
  int64_t local = 0;
};

// What there is behind the dims before `d`.
class PieceCopy {
 public:
  PieceCopy(const LoadedPiece& piece, int64_t element_bytes)
      : dims_(piece.dims), each_(piece.dims.size() + 1) {
    each_.back() = {element_bytes, element_bytes};
    for (size_t d = dims_.size(); d > 0; --d) {
      each_[d - 1] = {each_[d].whole * dims_[d - 1].whole,
                      each_[d].local * dims_[d - 1].local};
    }
  }

  void Run(size_t d, const char* from, char* to) const {
    const EachBytes& each = each_[d];
    if (each.whole == each.local) {
      std::memcpy(to, from, each.whole);
      return;
    }
    const EachBytes& next = each_[d + 1];
    for (const Range& run : dims_[d].runs) {
      for (int64_t i = run.begin; i < run.end; ++i, to += next.local) {
        Run(d + 1, from + i * next.whole, to);
      }
    }
  }

 private:
  const std::vector<LoadedPiece::OfDim>& dims_;
  std::vector<EachBytes> each_;
};

struct Row {
  absl::string_view source;
  FillSample fill;
};
constexpr Row kRows[] = {
    {"tokens", FillTokens},
    {"next_tokens", FillTargets},
    {"document_starts", FillDocuments},
    {"positions", FillPositions},
};

}  // namespace

absl::StatusOr<FillSample> FindFillSample(absl::string_view source) {
  for (const Row& row : kRows) {
    if (row.source == source) return row.fill;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("this worker has no source ", source,
                   " of tensors of the batch; scheduler and worker must be of "
                   "one build"));
}

void CopyPiece(const LoadedPiece& piece, int64_t element_bytes,
               const char* whole, char* to) {
  PieceCopy(piece, element_bytes).Run(0, whole, to);
}

}  // namespace troupe
