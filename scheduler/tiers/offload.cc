#include "scheduler/tiers/offload.h"

#include <string>

namespace troupe {
namespace {

Tier Named(const std::string& tier) {
  return tier == "host" ? HOST : tier == "nvme" ? NVME : DEVICE;
}

}  // namespace

Tier RestsIn(const MemorySpec& memory, Buffer::Kind kind) {
  switch (kind) {
    case Buffer::MASTER_WEIGHTS:
    case Buffer::OPTIMIZER_STATE:
      return Named(memory.optimizer());
    case Buffer::PARAMETERS:
      return Named(memory.parameters());
    case Buffer::PARAMETER_GRADIENTS:
      return Named(memory.gradients());
    // From their last use in forward to their first one in backward.
    case Buffer::ACTIVATION:
    case Buffer::STASH:
      return Named(memory.activations());
    // On its way to a checkpoint.
    case Buffer::SNAPSHOT_COPY:
    // For the recovery of the job.
    case Buffer::STATE_COPY:
    case Buffer::PEER_COPY:
      return HOST;
    default:
      return DEVICE;
  }
}

bool StepsOnHost(const MemorySpec& memory) {
  return RestsIn(memory, Buffer::OPTIMIZER_STATE) != DEVICE;
}

bool MayStayOnDevice(const MemorySpec& memory) {
  return RestsIn(memory, Buffer::PARAMETERS) != DEVICE ||
         RestsIn(memory, Buffer::PARAMETER_GRADIENTS) != DEVICE ||
         RestsIn(memory, Buffer::ACTIVATION) != DEVICE;
}

}  // namespace troupe
