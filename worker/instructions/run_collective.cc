#include "worker/instructions/run_collective.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {

std::vector<ElementRange> GivenSlices(const Plan& plan,
                                      const Stretch& stretch) {
  std::vector<ElementRange> slices;
  for (const Range& slice : WeightedSlices(plan, stretch)) {
    slices.push_back({slice.begin, slice.end});
  }
  return slices;
}

absl::Status RunCollective(Collective collective,
                           const CollectiveBuffers& buffers,
                           Communicator& communicator,
                           const CommOptions& options) {
  const auto& [from, to, backward, root] = buffers;
  switch (collective) {
    case ALL_REDUCE:
      CHECK(from.data == nullptr) << options.name << " is summed in place";
      return communicator.AllReduce(to, ReduceOp::kSum, options);
    case ALL_GATHER:
      return communicator.AllGather({.send = from, .receive = to}, options);
    case REDUCE_SCATTER:
      return communicator.ReduceScatter({.send = from, .receive = to},
                                        ReduceOp::kSum, options);
    case ALL_TO_ALL:
      return communicator.AllToAll({.send = from, .receive = to}, options);
    case SHIFT: {
      const int ranks = communicator.size();
      const int next = (communicator.rank() + 1) % ranks;
      const int before = (communicator.rank() + ranks - 1) % ranks;
      return communicator.Shift({.send = from,
                                 .to = backward ? before : next,
                                 .receive = to,
                                 .from = backward ? next : before},
                                options);
    }
    case BROADCAST:
      return communicator.Broadcast({.send = from, .receive = to}, root,
                                    options);
    case REDUCE:
      return communicator.Reduce({.send = from, .receive = to}, root,
                                 ReduceOp::kSum, options);
    default:
      return absl::UnimplementedError(
          absl::StrCat("this worker has no ", Collective_Name(collective)));
  }
}

}  // namespace troupe
