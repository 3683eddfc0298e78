#include "worker/instructions/fill_sample.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

void CopyIds(const std::vector<int32_t>& ids, void* to) {
  std::copy(ids.begin(), ids.end(), static_cast<int32_t*>(to));
}

void FillPositions(const TokenSample& sample, void* to) {
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
    {"tokens",
     [](const TokenSample& sample, void* to) { CopyIds(sample.tokens, to); }},
    {"next_tokens",
     [](const TokenSample& sample, void* to) { CopyIds(sample.targets, to); }},
    {"document_starts", [](const TokenSample& sample,
                           void* to) { CopyIds(sample.documents, to); }},
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
