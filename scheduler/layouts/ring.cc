#include "scheduler/layouts/ring.h"

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

void ShiftBy(int hops, const std::string& axis, Layout& layout) {
  for (Layout::AxisLayout& of : *layout.mutable_axes()) {
    if (of.axis() == axis) of.set_shift(hops);
  }
}

}  // namespace

int Around::Arrive() {
  const int before = here_;
  here_ = arrived_;
  if (!is_last()) {
    const std::string at = absl::StrCat(arrived_, " at hop ", hop_);
    here_ = writer_.NewTensor(arrived_, absl::StrCat("here, of ", at));
    going_on_ = writer_.NewTensor(arrived_, absl::StrCat("going on, of ", at));
    writer_.AddOp(Op::FORK, {{"x", arrived_}},
                  {{"y", here_}, {"other", going_on_}});
  }
  if (hop_ > 0) {
    Op& back = writer_.AddOp(Op::RETURN, {{"x", before}, {"y", here_}}, {});
    back.mutable_exchange()->add_axes(axis_.name);
    back.mutable_exchange()->set_backward(SHIFT);
  }
  return here_;
}

void Around::GoOn() {
  if (is_last()) return;
  ++hop_;
  arrived_ = writer_.NewTensor(
      going_on_, absl::StrCat("of ", going_on_, " after hop ", hop_));
  TensorSpec& moved = writer_.tensor(arrived_);
  ShiftBy(hop_, axis_.name, *moved.mutable_layout());
  ShiftBy(hop_, axis_.name, *moved.mutable_gradient_layout());
  Op& shift =
      writer_.AddOp(Op::EXCHANGE, {{"x", going_on_}}, {{"y", arrived_}});
  shift.mutable_exchange()->add_axes(axis_.name);
  shift.mutable_exchange()->set_forward(SHIFT);
  shift.mutable_exchange()->set_backward(SHIFT);
}

}  // namespace troupe
