#include "scheduler/layouts/blocks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/plan/fields.h"
#include "proto/plan/plan_limits.h"

namespace troupe {
namespace {

// One rank has no method.
std::string BlockText(const SizeField& field, int size) {
  return absl::StrCat(
      field.ValueFor(size),
      field.power > 1 && size == 1 ? " without parallelism.tensor_method" : "");
}

}  // namespace

int Power(int base, int exponent) {
  int power = 1;
  while (exponent-- > 0) power *= base;
  return power;
}

int Root(int value, int exponent) {
  const auto fits = [&](int root) {
    int left = value;
    for (int i = 0; i < exponent; ++i) left /= root;
    return left > 0;
  };
  int root = 1;
  while (fits(root + 1)) ++root;
  return root;
}

bool IsPower(int value, int exponent) {
  return value > 1 && Power(Root(value, exponent), exponent) == value;
}

AxisExtent SideOf(int ranks, int layers, int sides) {
  AxisExtent side = {.size = Root(ranks / layers, sides),
                     .field = {.name = "parallelism.tensor",
                               .ranks = layers,
                               .power = sides,
                               .text = BlockText}};
  side.field.value = side.field.ValueFor(side.size);
  return side;
}

absl::Status CheckIsBlock(const BlockShape& shape, int ranks) {
  if (IsPower(ranks, shape.sides)) return absl::OkStatus();
  const int side = std::max(Root(ranks, shape.sides), 2);
  const int more = Power(side + 1, shape.sides);
  return FieldError(
      "parallelism.tensor",
      absl::StrCat(ranks, " ranks are no ", shape.name,
                   ", which tensor_method: ", shape.method,
                   " needs: as many along each of ",
                   shape.sides == 2 ? "two" : "three", " axes; use ",
                   Power(side, shape.sides),
                   more <= kTensorMax ? absl::StrCat(" or ", more) : ""));
}

}  // namespace troupe
