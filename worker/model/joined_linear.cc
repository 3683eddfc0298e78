#include "worker/model/joined_linear.h"

#include <utility>

#include "proto/base/status.h"

namespace troupe {
namespace {

// The columns of the part that begins at `begin`, which moves behind them.
Tensor NextColumns(const Tensor& all, const Linear& part, int64_t& begin) {
  const int64_t end = begin + part.out();
  const Tensor columns = begin == 0 && end == all.columns()
                             ? all
                             : all.Slice(all.rank() - 1, begin, end);
  begin = end;
  return columns;
}

}  // namespace

absl::StatusOr<JoinedLinear> JoinedLinear::Create(const Unit& unit,
                                                  const Options& options) {
  std::vector<Linear> parts;
  for (const Projection& projection : options.projections) {
    ASSIGN_OR_RETURN(Linear part, Linear::Create(unit, projection.prefix,
                                                 {.in = options.in,
                                                  .out = projection.out,
                                                  .layout = options.layout,
                                                  .bias = options.bias}));
    const absl::optional<Linear> joined =
        parts.empty() ? absl::nullopt : Linear::Join(parts.back(), part);
    if (joined.has_value()) {
      parts.back() = *joined;
    } else {
      parts.push_back(std::move(part));
    }
  }
  return JoinedLinear(std::move(parts));
}

JoinedLinear::JoinedLinear(std::vector<Linear> parts)
    : parts_(std::move(parts)) {}

void JoinedLinear::Forward(Device& device, void* parameters,
                           const ForwardArgs& args) const {
  int64_t begin = 0;
  for (const Linear& part : parts_) {
    part.Forward(device, parameters,
                 {.x = args.x, .y = NextColumns(args.y, part, begin)});
  }
}

void JoinedLinear::BackwardInput(Device& device, void* parameters,
                                 const BackwardInputArgs& args) const {
  int64_t begin = 0;
  for (const Linear& part : parts_) {
    const bool first = begin == 0;
    part.BackwardInput(device, parameters,
                       {.dy = NextColumns(args.dy, part, begin),
                        .dx = args.dx,
                        .accumulate = !first});
  }
}

void JoinedLinear::BackwardWeight(Device& device, void* gradients,
                                  const BackwardWeightArgs& args) const {
  int64_t begin = 0;
  for (const Linear& part : parts_) {
    part.BackwardWeight(device, gradients,
                        {.x = args.x,
                         .dy = NextColumns(args.dy, part, begin),
                         .from_zero = args.from_zero});
  }
}

}  // namespace troupe
