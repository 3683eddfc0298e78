#include "scheduler/passes/buffer_bytes.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/groups.h"
#include "proto/plan/layout.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "scheduler/passes/draft.h"

namespace troupe {
namespace {

// f64: loss, tokens, norm, stop, save.
constexpr int64_t kScalarsBytes = 5 * 8;
constexpr int64_t kBytesOfI32 = 4;
constexpr int64_t kBytesOfF32 = 4;

int64_t WorkspaceBytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const Unit& unit : plan.units()) {
    bytes = std::max(bytes, unit.workspace_bytes());
  }
  return bytes;
}

}  // namespace

ByteRange CopyOfPart(const Plan& plan, const Role& role, int unit, int part) {
  const Placement* const placement = FindPlacement(role, unit);
  CHECK(placement != nullptr) << "unit " << unit << " is not here";
  const int64_t buffers = 1 + OptimizerMoments(plan.job().optimizer());
  ByteRange range;
  for (int p = 0; p <= part; ++p) {
    const Placement::Part& with = placement->parts(p);
    const int ranks = with.has_shared()
                          ? GroupSize(plan.mesh(), plan.groups(with.shared()))
                          : 1;
    const int64_t elements = plan.units(unit).parts(p).elements();
    range.offset += range.bytes;
    range.bytes = EvenLines(elements, {.index = 0, .count = ranks}).size() *
                  buffers * kBytesOfF32;
  }
  return range;
}

int64_t BufferBytes(const Plan& plan, const Role& role, Buffer::Kind kind,
                    int unit) {
  const TrainingSpec& training = plan.job().training();
  const int moments = OptimizerMoments(plan.job().optimizer());
  switch (kind) {
    case Buffer::BATCH:
      return 2 * kBytesOfI32 * training.micro_batch_size() *
             training.sequence_length();
    case Buffer::SCALARS:
      return kScalarsBytes;
    case Buffer::WORKSPACE:
      return WorkspaceBytes(plan);
    case Buffer::ACTIVATION:
      return plan.units(unit).activation_bytes();
    case Buffer::GRADIENT:  // from the unit behind, which the last one lacks
      return unit + 1 < plan.units_size() ? plan.units(unit).activation_bytes()
                                          : 0;
    case Buffer::STASH:
      return plan.units(unit).stash_bytes();
    case Buffer::WEIGHT_STASH:
      return plan.units(unit).weight_stash_bytes();
    case Buffer::SEGMENT_VALUES:
      return plan.units(unit).segment_bytes();
    case Buffer::SEGMENT_GRADIENTS:
      return plan.units(unit).segment_gradient_bytes();
    case Buffer::PARAMETERS:
      return plan.units(unit).flat_elements() *
             BytesOfElement(ComputeType(training));
    case Buffer::PARAMETER_GRADIENTS:
    case Buffer::MASTER_WEIGHTS:
      return FlatBytes(plan.units(unit));
    case Buffer::OPTIMIZER_STATE:
      return FlatBytes(plan.units(unit)) * moments;
    case Buffer::SNAPSHOT_COPY: {
      const int parts = plan.units(unit).parts_size();
      if (parts == 0) return 0;
      const ByteRange last = CopyOfPart(plan, role, unit, parts - 1);
      return last.offset + last.bytes;
    }
    default:
      CHECK(false) << "no size known for " << Buffer::Kind_Name(kind);
      return 0;
  }
}

}  // namespace troupe
