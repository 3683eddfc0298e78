#include "proto/plan/part_state.h"

#include "proto/plan/precision.h"

namespace troupe {
namespace {

const Unit::Part& AnyPart(const Unit& unit) {
  return unit.parts().empty() ? Unit::Part::default_instance() : unit.parts(0);
}

ElementType OrF32(ElementType type) {
  return type == ELEMENT_TYPE_UNSPECIFIED ? F32 : type;
}

}  // namespace

ElementType ParametersType(const Unit& unit) {
  return OrF32(AnyPart(unit).dtype());
}

ElementType GradientsType(const Unit& unit) {
  return OrF32(AnyPart(unit).gradient_dtype());
}

int64_t BytesOfFlat(const Unit& unit, Buffer::Kind kind) {
  switch (kind) {
    case Buffer::PARAMETERS:
    case Buffer::UNSHARDED_PARAMETERS:
      return BytesOfElement(ParametersType(unit));
    case Buffer::PARAMETER_GRADIENTS:
    case Buffer::UNSHARDED_GRADIENTS:
      return BytesOfElement(GradientsType(unit));
    case Buffer::MASTER_WEIGHTS:
    case Buffer::OPTIMIZER_STATE:
      return BytesOfElement(F32);
    default:
      return 0;
  }
}

Tier TierOfFlat(const Unit& unit, Buffer::Kind kind) {
  const Unit::Part::Tiers& tiers = AnyPart(unit).tiers();
  Tier tier = DEVICE;
  switch (kind) {
    case Buffer::PARAMETERS:
      tier = tiers.parameters();
      break;
    case Buffer::PARAMETER_GRADIENTS:
      tier = tiers.gradients();
      break;
    case Buffer::MASTER_WEIGHTS:
    case Buffer::OPTIMIZER_STATE:
      tier = tiers.states();
      break;
    default:
      break;
  }
  return tier == TIER_UNSPECIFIED ? DEVICE : tier;
}

bool StepsOnHost(const Unit& unit) {
  return TierOfFlat(unit, Buffer::OPTIMIZER_STATE) != DEVICE;
}

bool GradientsStayOnDevice(const Unit& unit) {
  return !StepsOnHost(unit) &&
         TierOfFlat(unit, Buffer::PARAMETER_GRADIENTS) == DEVICE;
}

}  // namespace troupe
