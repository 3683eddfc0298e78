// What a worker computes on, as its flags say, and the memory of its tiers.
//
//   ASSIGN_OR_RETURN(OpenedDevice opened, OpenDevice(&options));
//   const TierArenas arenas(budgets, {.device = *opened.device_memory,
//                                     .host = *opened.host_memory});
#ifndef TROUPE_WORKER_SERVICE_OPEN_DEVICE_H_
#define TROUPE_WORKER_SERVICE_OPEN_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "ops/kept_choices.h"
#include "proto/cluster.pb.h"
#include "storage/tier/allocator.h"
#include "worker/service/options.h"

namespace troupe {

struct OpenedDevice {
  std::unique_ptr<KeptChoices> choices;  // of a GPU, for products
  std::unique_ptr<Device> device;
  absl::optional<Gpu> gpu;  // absent: a CPU
  // Of the tiers. On a GPU, its own memory and page-locked host memory.
  std::unique_ptr<TierAllocator> device_memory;
  std::unique_ptr<TierAllocator> host_memory;
};

// REQUIRES resolved options; fills in a GPU's device_memory, and of a CPU the
// threads that there are, with a warning where they are fewer than asked for.
// InvalidArgument names the flag: no such GPU, a build without CUDA, a budget
// past its memory.
absl::StatusOr<OpenedDevice> OpenDevice(WorkerOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_OPEN_DEVICE_H_
