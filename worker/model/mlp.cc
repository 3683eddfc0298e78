#include "worker/model/mlp.h"

#include <utility>

#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<Mlp> Mlp::Create(const Unit& unit, const Options& options) {
  ASSIGN_OR_RETURN(Linear c_fc, Linear::Create(unit, options.prefix + ".c_fc",
                                               {.in = options.width,
                                                .out = options.intermediate}));
  ASSIGN_OR_RETURN(
      Linear c_proj,
      Linear::Create(unit, options.prefix + ".c_proj",
                     {.in = options.intermediate, .out = options.width}));
  return Mlp(std::move(c_fc), std::move(c_proj));
}

Mlp::Mlp(Linear c_fc, Linear c_proj)
    : c_fc_(std::move(c_fc)), c_proj_(std::move(c_proj)) {}

void Mlp::Forward(Device& device, void* parameters,
                  const ForwardArgs& args) const {
  c_fc_.Forward(device, parameters,
                {.x = args.x,
                 .y = args.after_gelu,
                 .gelu = true,
                 .before_gelu = args.before_gelu});
  c_proj_.Forward(device, parameters, {.x = args.after_gelu, .y = args.y});
}

void Mlp::BackwardInput(Device& device, void* parameters,
                        const BackwardInputArgs& args) const {
  c_proj_.BackwardInput(device, parameters,
                        {.dy = args.dy,
                         .dx = args.d_before_gelu,
                         .gelu_input = args.before_gelu});
  c_fc_.BackwardInput(device, parameters,
                      {.dy = args.d_before_gelu, .dx = args.dx});
}

void Mlp::BackwardWeight(Device& device, void* gradients,
                         const BackwardWeightArgs& args) const {
  c_proj_.BackwardWeight(
      device, gradients,
      {.x = args.after_gelu, .dy = args.dy, .from_zero = args.from_zero});
  c_fc_.BackwardWeight(
      device, gradients,
      {.x = args.x, .dy = args.d_before_gelu, .from_zero = args.from_zero});
}

}  // namespace troupe
