#include "ops/join_heads.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckPart(const Tensor& part, const Tensor& y, int64_t columns,
               const char* name) {
  if (!part.defined()) return;
  CHECK(part.dtype() == y.dtype() && part.rank() == 3 &&
        part.dim(0) == y.dim(0) && part.dim(1) == y.dim(1) &&
        part.dim(2) == columns)
      << name << " is " << DTypeName(part.dtype()) << part.ShapeString()
      << ", wants " << columns << " columns for " << y.ShapeString();
}

void Check(const JoinHeadsArgs& args) {
  CHECK_ACTIVATION(args.y);
  CHECK_EQ(args.y.rank(), 3);
  const int64_t h = args.heads, g = args.kv_heads;
  const int64_t r = args.shared_width, n = args.key_width - r;
  const int64_t v = args.value_width;
  CHECK(h > 0 && g > 0 && h % g == 0) << h << " heads, " << g << " of keys";
  CHECK(r >= 0 && r % 2 == 0 && n >= 0 && r + n > 0 && v > 0)
      << r << " + " << n << " columns of keys, " << v << " of values";
  CHECK_EQ(args.y.dim(2), (h + g) * (r + n) + g * v);
  CheckPart(args.q, args.y, h * (n + r), "q");
  CheckPart(args.k, args.y, g * (n + (args.values_in_keys ? v : 0)), "k");
  CheckPart(args.v, args.y, g * v, "v");
  CheckPart(args.shared, args.y, r, "shared");
  CHECK(!args.values_in_keys || !args.v.defined()) << "values twice";
}

}  // namespace

void JoinHeads(Device& device, const JoinHeadsArgs& args) {
  Check(args);
  CHECK(args.q.defined() && args.k.defined() &&
        args.v.defined() != args.values_in_keys &&
        args.shared.defined() == (args.shared_width > 0))
      << "parts are missing";
  device.kernels().join_heads(device, args);
}

void JoinHeadsBackward(Device& device, const JoinHeadsArgs& args) {
  Check(args);
  device.kernels().join_heads_backward(device, args);
}

}  // namespace troupe
