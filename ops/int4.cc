#include "ops/int4.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckInt4(const Int4Args& args) {
  CHECK_DENSE_F32(args.elements);
  CHECK_F32_ELEMENTS(args.compressed, Int4Words(args.elements.elements()));
}

}  // namespace

void ToInt4(Device& device, const Int4Args& args) {
  CheckInt4(args);
  device.kernels().to_int4(device, args);
}

void FromInt4(Device& device, const Int4Args& args) {
  CheckInt4(args);
  device.kernels().from_int4(device, args);
}

}  // namespace troupe
