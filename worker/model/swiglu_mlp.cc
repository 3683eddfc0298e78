#include "worker/model/swiglu_mlp.h"

#include <utility>

#include "ops/swiglu.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

Tensor Gate(const Tensor& gate_up) {
  return gate_up.Slice(gate_up.rank() - 1, 0, gate_up.columns() / 2);
}

Tensor Up(const Tensor& gate_up) {
  return gate_up.Slice(gate_up.rank() - 1, gate_up.columns() / 2,
                       gate_up.columns());
}

}  // namespace

absl::StatusOr<SwiGluMlp> SwiGluMlp::Create(const Unit& unit,
                                            const Options& options) {
  const int64_t intermediate = options.intermediate;
  ASSIGN_OR_RETURN(
      JoinedLinear gate_up,
      JoinedLinear::Create(
          unit, {.projections = {{options.prefix + ".gate_proj", intermediate},
                                 {options.prefix + ".up_proj", intermediate}},
                 .in = options.width,
                 .layout = WeightLayout::kOutIn,
                 .bias = options.bias}));
  ASSIGN_OR_RETURN(Linear down,
                   Linear::Create(unit, options.prefix + ".down_proj",
                                  {.in = intermediate,
                                   .out = options.width,
                                   .layout = WeightLayout::kOutIn,
                                   .bias = options.bias}));
  return SwiGluMlp(std::move(gate_up), std::move(down));
}

SwiGluMlp::SwiGluMlp(JoinedLinear gate_up, Linear down)
    : gate_up_(std::move(gate_up)), down_(std::move(down)) {}

void SwiGluMlp::Forward(Device& device, void* parameters,
                        const ForwardArgs& args) const {
  gate_up_.Forward(device, parameters, {.x = args.x, .y = args.gate_up});
  SwiGlu(device,
         {.gate = Gate(args.gate_up), .up = Up(args.gate_up), .y = args.gated});
  down_.Forward(device, parameters, {.x = args.gated, .y = args.y});
}

void SwiGluMlp::BackwardInput(Device& device, void* parameters,
                              const BackwardInputArgs& args) const {
  down_.BackwardInput(device, parameters, {.dy = args.dy, .dx = args.d_gated});
  SwiGluBackward(device, {.gate = Gate(args.gate_up),
                          .up = Up(args.gate_up),
                          .dy = args.d_gated,
                          .d_gate = Gate(args.d_gate_up),
                          .d_up = Up(args.d_gate_up)});
  gate_up_.BackwardInput(device, parameters,
                         {.dy = args.d_gate_up, .dx = args.dx});
}

void SwiGluMlp::BackwardWeight(Device& device, void* gradients,
                               const BackwardWeightArgs& args) const {
  down_.BackwardWeight(
      device, gradients,
      {.x = args.gated, .dy = args.dy, .from_zero = args.from_zero});
  gate_up_.BackwardWeight(
      device, gradients,
      {.x = args.x, .dy = args.d_gate_up, .from_zero = args.from_zero});
}

}  // namespace troupe
