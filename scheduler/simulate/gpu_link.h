// How fast NCCL moves bytes between the GPUs of one host. Nobody measures that
// before a job runs, as it takes two GPUs and their workers: so it is estimated
// from the link that a GPU has.
#ifndef TROUPE_SCHEDULER_SIMULATE_GPU_LINK_H_
#define TROUPE_SCHEDULER_SIMULATE_GPU_LINK_H_

#include "absl/types/optional.h"
#include "proto/cluster.pb.h"

namespace troupe {

// Three quarters of what the data sheet says for one direction, as rings of
// NCCL reach: of NVLink where GPUs of this name have one (A100 and H100 as SXM,
// H200, B200), else of the PCIe link that the worker saw. Nothing where it saw
// none.
absl::optional<LinkRate> NcclLinkOf(const Gpu& gpu);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_GPU_LINK_H_
