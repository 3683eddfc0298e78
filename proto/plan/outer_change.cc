#include "proto/plan/outer_change.h"

#include <algorithm>

#include "proto/plan/at_rest.h"
#include "proto/plan/islands.h"

namespace troupe {
namespace {

constexpr int64_t kLineBytes = 64;

int64_t InWhole(int64_t count, int64_t each) {
  return (count + each - 1) / each * each;
}

}  // namespace

int64_t CompressedBytes(absl::string_view compress, int64_t elements) {
  const int64_t blocks = (elements + kChangeBlock - 1) / kChangeBlock;
  const int64_t bytes =
      compress == kAsInt4 ? kChangeBlock / 2 + 4 : 2 * kChangeBlock;
  return blocks * bytes;
}

int64_t ChangeLayout::ElementsOf(int piece) const {
  return std::clamp<int64_t>(elements - piece * piece_elements, 0,
                             piece_elements);
}

ChangeLayout LayChange(const JobSpec& job, int64_t elements) {
  ChangeLayout layout = {.elements = elements,
                         .islands = IslandsOf(job.parallelism())};
  const std::string& compress = job.islands().compress();
  layout.compressed = compress != kUncompressed;
  if (!layout.compressed) return layout;
  layout.piece_elements =
      InWhole((elements + layout.islands - 1) / layout.islands, kChangeBlock);
  layout.piece_bytes =
      InWhole(CompressedBytes(compress, layout.piece_elements), kLineBytes);
  return layout;
}

ChangeLayout LargestChange(const Plan& plan, const Placement& placement,
                           int rank) {
  return LayChange(plan.job(), LargestTrainedAtRest(plan, placement, rank));
}

int64_t ChangeWorkspaceBytes(const Plan& plan, const Placement& placement,
                             int rank) {
  const ChangeLayout layout = LargestChange(plan, placement, rank);
  if (!layout.compressed) return 0;
  return 4 *
         InWhole(std::min(layout.piece_elements, kChangeWindow), kChangeBlock);
}

int64_t ChangeBytesReduced(const ChangeLayout& layout) {
  return layout.compressed ? layout.pieces_bytes() : 4 * layout.elements;
}

}  // namespace troupe
