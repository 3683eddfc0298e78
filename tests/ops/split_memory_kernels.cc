#include "tests/ops/split_memory_kernels.h"

#include <vector>

#include "ops/adafactor.h"
#include "ops/attention.h"
#include "ops/average.h"
#include "ops/bias_gradient.h"
#include "ops/capacity.h"
#include "ops/causal_softmax.h"
#include "ops/cross_entropy.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "ops/gelu.h"
#include "ops/grouped_matmul.h"
#include "ops/int4.h"
#include "ops/join_heads.h"
#include "ops/layer_norm.h"
#include "ops/load_step.h"
#include "ops/matmul.h"
#include "ops/optimizer.h"
#include "ops/permute.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/regroup.h"
#include "ops/rms_norm.h"
#include "ops/rotary.h"
#include "ops/route.h"
#include "ops/router_loss.h"
#include "ops/split_norm.h"
#include "ops/swiglu.h"
#include "tests/ops/split_memory_device.h"

namespace troupe {
namespace {

// The members of an op's arguments that are tensors. An op is listed at the end
// of this file with all of its own.
template <typename Args>
using Operand = Tensor Args::*;

template <typename Args>
Args OnRealBytes(const SplitMemoryDevice& split, Args args,
                 const std::vector<Operand<Args>>& operands) {
  for (const Operand<Args> operand : operands) {
    Tensor& tensor = args.*operand;
    if (tensor.defined()) tensor = tensor.At(split.Bytes(tensor.raw()));
  }
  return args;
}

template <auto kernel, auto... operands, typename Args>
void Enqueued(Device& device, const Args& args) {
  auto& split = static_cast<SplitMemoryDevice&>(device);
  split.Enqueue([&split, real = OnRealBytes(split, args, {operands...})] {
    (split.cpu().kernels().*kernel)(split.cpu(), real);
  });
}

// The same of an op on the rows of a round, whose table is one of its operands.
template <auto kernel, auto... operands, typename Args>
void EnqueuedRound(Device& device, const Args& args) {
  const auto& split = static_cast<SplitMemoryDevice&>(device);
  Args real = args;
  Tensor& offsets = real.round.offsets;
  offsets = offsets.At(split.Bytes(offsets.raw()));
  Enqueued<kernel, operands...>(device, real);
}

// Its table lies on the host and is read before the call returns.
void EnqueuedRotary(Device& device, const RotaryArgs& args) {
  auto& split = static_cast<SplitMemoryDevice&>(device);
  const int64_t pairs = RotaryPairs(args);
  std::vector<double> frequencies(args.inverse_frequencies,
                                  args.inverse_frequencies + pairs);
  split.Enqueue([&split,
                 real = OnRealBytes(split, args,
                                    {&RotaryArgs::x, &RotaryArgs::documents}),
                 frequencies = std::move(frequencies)]() mutable {
    real.inverse_frequencies = frequencies.data();
    split.cpu().kernels().rotary(split.cpu(), real);
  });
}

using K = KernelTable;

}  // namespace

constexpr KernelTable kSplitMemoryKernels = {
    .matmul =
        Enqueued<&K::matmul, &MatMulArgs::a, &MatMulArgs::b, &MatMulArgs::c,
                 &MatMulArgs::bias, &MatMulArgs::pre_activation,
                 &MatMulArgs::gelu_input, &MatMulArgs::residual>,
    .bias_gradient = Enqueued<&K::bias_gradient, &BiasGradientArgs::dy,
                              &BiasGradientArgs::db>,
    .embedding = Enqueued<&K::embedding, &EmbeddingArgs::tokens,
                          &EmbeddingArgs::documents, &EmbeddingArgs::wte,
                          &EmbeddingArgs::wpe, &EmbeddingArgs::y>,
    .embedding_backward =
        Enqueued<&K::embedding_backward, &EmbeddingBackwardArgs::tokens,
                 &EmbeddingBackwardArgs::documents, &EmbeddingBackwardArgs::dy,
                 &EmbeddingBackwardArgs::dwte, &EmbeddingBackwardArgs::dwpe>,
    .apply_dropout =
        Enqueued<&K::apply_dropout, &ApplyDropoutArgs::x,
                 &ApplyDropoutArgs::residual, &ApplyDropoutArgs::y>,
    .layer_norm =
        Enqueued<&K::layer_norm, &LayerNormArgs::x, &LayerNormArgs::residual,
                 &LayerNormArgs::sum, &LayerNormArgs::gamma,
                 &LayerNormArgs::beta, &LayerNormArgs::y, &LayerNormArgs::mean,
                 &LayerNormArgs::rstd>,
    .layer_norm_backward_input = Enqueued<
        &K::layer_norm_backward_input, &LayerNormBackwardInputArgs::dy,
        &LayerNormBackwardInputArgs::s, &LayerNormBackwardInputArgs::gamma,
        &LayerNormBackwardInputArgs::mean, &LayerNormBackwardInputArgs::rstd,
        &LayerNormBackwardInputArgs::residual_gradient,
        &LayerNormBackwardInputArgs::dx>,
    .layer_norm_backward_weight = Enqueued<
        &K::layer_norm_backward_weight, &LayerNormBackwardWeightArgs::dy,
        &LayerNormBackwardWeightArgs::s, &LayerNormBackwardWeightArgs::mean,
        &LayerNormBackwardWeightArgs::rstd,
        &LayerNormBackwardWeightArgs::dgamma,
        &LayerNormBackwardWeightArgs::dbeta>,
    .rms_norm = Enqueued<&K::rms_norm, &RmsNormArgs::x, &RmsNormArgs::residual,
                         &RmsNormArgs::sum, &RmsNormArgs::gamma,
                         &RmsNormArgs::y, &RmsNormArgs::rstd>,
    .rms_norm_backward_input =
        Enqueued<&K::rms_norm_backward_input, &RmsNormBackwardInputArgs::dy,
                 &RmsNormBackwardInputArgs::s, &RmsNormBackwardInputArgs::gamma,
                 &RmsNormBackwardInputArgs::rstd,
                 &RmsNormBackwardInputArgs::residual_gradient,
                 &RmsNormBackwardInputArgs::dx>,
    .rms_norm_backward_weight =
        Enqueued<&K::rms_norm_backward_weight, &RmsNormBackwardWeightArgs::dy,
                 &RmsNormBackwardWeightArgs::s,
                 &RmsNormBackwardWeightArgs::rstd,
                 &RmsNormBackwardWeightArgs::dgamma>,
    .row_sums = Enqueued<&K::row_sums, &RowSumsArgs::x, &RowSumsArgs::row_sums>,
    .row_sums_backward =
        Enqueued<&K::row_sums_backward, &RowSumsBackwardArgs::x,
                 &RowSumsBackwardArgs::row_sums_gradient,
                 &RowSumsBackwardArgs::residual_gradient,
                 &RowSumsBackwardArgs::dx>,
    .split_norm =
        Enqueued<&K::split_norm, &SplitNormArgs::x, &SplitNormArgs::row_sums,
                 &SplitNormArgs::gamma, &SplitNormArgs::beta, &SplitNormArgs::y,
                 &SplitNormArgs::mean, &SplitNormArgs::rstd>,
    .split_norm_backward_input = Enqueued<
        &K::split_norm_backward_input, &SplitNormBackwardInputArgs::dy,
        &SplitNormBackwardInputArgs::x, &SplitNormBackwardInputArgs::gamma,
        &SplitNormBackwardInputArgs::mean, &SplitNormBackwardInputArgs::rstd,
        &SplitNormBackwardInputArgs::residual_gradient,
        &SplitNormBackwardInputArgs::dx,
        &SplitNormBackwardInputArgs::row_sums_gradient>,
    .gelu = Enqueued<&K::gelu, &GeluArgs::x, &GeluArgs::y>,
    .gelu_backward = Enqueued<&K::gelu_backward, &GeluBackwardArgs::x,
                              &GeluBackwardArgs::dy, &GeluBackwardArgs::dx>,
    .swiglu =
        Enqueued<&K::swiglu, &SwiGluArgs::gate, &SwiGluArgs::up, &SwiGluArgs::y,
                 &SwiGluArgs::weights, &SwiGluArgs::offsets>,
    .swiglu_backward =
        Enqueued<&K::swiglu_backward, &SwiGluBackwardArgs::gate,
                 &SwiGluBackwardArgs::up, &SwiGluBackwardArgs::dy,
                 &SwiGluBackwardArgs::d_gate, &SwiGluBackwardArgs::d_up,
                 &SwiGluBackwardArgs::weights, &SwiGluBackwardArgs::d_weights,
                 &SwiGluBackwardArgs::offsets>,
    .route = Enqueued<&K::route, &RouteArgs::logits, &RouteArgs::bias,
                      &RouteArgs::scores, &RouteArgs::choices,
                      &RouteArgs::gates, &RouteArgs::logsumexp>,
    .route_backward =
        Enqueued<&K::route_backward, &RouteBackwardArgs::scores,
                 &RouteBackwardArgs::choices, &RouteBackwardArgs::d_gates,
                 &RouteBackwardArgs::d_scores, &RouteBackwardArgs::d_logsumexp,
                 &RouteBackwardArgs::logsumexp, &RouteBackwardArgs::logits,
                 &RouteBackwardArgs::d_logits>,
    .route_load =
        Enqueued<&K::route_load, &RouteLoadArgs::choices, &RouteLoadArgs::load>,
    .router_loss =
        Enqueued<&K::router_loss, &RouterLossArgs::scores,
                 &RouterLossArgs::load, &RouterLossArgs::logsumexp,
                 &RouterLossArgs::choices, &RouterLossArgs::balance,
                 &RouterLossArgs::z, &RouterLossArgs::entropy,
                 &RouterLossArgs::rows_counted, &RouterLossArgs::tokens>,
    .router_loss_backward =
        Enqueued<&K::router_loss_backward, &RouterLossBackwardArgs::scores,
                 &RouterLossBackwardArgs::load,
                 &RouterLossBackwardArgs::logsumexp,
                 &RouterLossBackwardArgs::d_scores,
                 &RouterLossBackwardArgs::d_logsumexp>,
    .capacity = Enqueued<&K::capacity, &CapacityArgs::choices,
                         &CapacityArgs::gates, &CapacityArgs::counts,
                         &CapacityArgs::kept, &CapacityArgs::dropped>,
    .capacity_backward =
        Enqueued<&K::capacity_backward, &CapacityBackwardArgs::kept,
                 &CapacityBackwardArgs::d_kept, &CapacityBackwardArgs::d_gates>,
    .sort_choices =
        Enqueued<&K::sort_choices, &SortChoicesArgs::choices,
                 &SortChoicesArgs::sources, &SortChoicesArgs::places,
                 &SortChoicesArgs::offsets>,
    .gather_rows = Enqueued<&K::gather_rows, &GatherRowsArgs::x,
                            &GatherRowsArgs::sources, &GatherRowsArgs::y>,
    .sum_rows = Enqueued<&K::sum_rows, &SumRowsArgs::x, &SumRowsArgs::places,
                         &SumRowsArgs::residual, &SumRowsArgs::y>,
    .regroup = EnqueuedRound<&K::regroup, &RegroupArgs::x, &RegroupArgs::y>,
    .ungroup = EnqueuedRound<&K::ungroup, &RegroupArgs::x, &RegroupArgs::y>,
    .own_offsets = EnqueuedRound<&K::own_offsets, &OwnOffsetsArgs::own_offsets>,
    .grouped_matmul = Enqueued<&K::grouped_matmul, &GroupedMatMulArgs::a,
                               &GroupedMatMulArgs::b, &GroupedMatMulArgs::c,
                               &GroupedMatMulArgs::offsets>,
    .grouped_weight_gradient =
        Enqueued<&K::grouped_weight_gradient, &GroupedWeightGradientArgs::x,
                 &GroupedWeightGradientArgs::dy,
                 &GroupedWeightGradientArgs::offsets,
                 &GroupedWeightGradientArgs::dw>,
    .join_heads =
        Enqueued<&K::join_heads, &JoinHeadsArgs::q, &JoinHeadsArgs::k,
                 &JoinHeadsArgs::v, &JoinHeadsArgs::shared, &JoinHeadsArgs::y>,
    .join_heads_backward =
        Enqueued<&K::join_heads_backward, &JoinHeadsArgs::q, &JoinHeadsArgs::k,
                 &JoinHeadsArgs::v, &JoinHeadsArgs::shared, &JoinHeadsArgs::y>,
    .rotary = EnqueuedRotary,
    .attention =
        Enqueued<&K::attention, &AttentionArgs::q, &AttentionArgs::documents,
                 &AttentionArgs::k, &AttentionArgs::v, &AttentionArgs::o,
                 &AttentionArgs::o_before, &AttentionArgs::logsumexp>,
    .attention_backward =
        Enqueued<&K::attention_backward, &AttentionBackwardArgs::q,
                 &AttentionBackwardArgs::documents, &AttentionBackwardArgs::k,
                 &AttentionBackwardArgs::v, &AttentionBackwardArgs::o,
                 &AttentionBackwardArgs::logsumexp, &AttentionBackwardArgs::d_o,
                 &AttentionBackwardArgs::dq, &AttentionBackwardArgs::dk,
                 &AttentionBackwardArgs::dv, &AttentionBackwardArgs::dq_before,
                 &AttentionBackwardArgs::dk_before,
                 &AttentionBackwardArgs::dv_before>,
    .causal_softmax =
        Enqueued<&K::causal_softmax, &CausalSoftmaxArgs::x,
                 &CausalSoftmaxArgs::documents, &CausalSoftmaxArgs::y>,
    .causal_softmax_backward =
        Enqueued<&K::causal_softmax_backward, &CausalSoftmaxBackwardArgs::y,
                 &CausalSoftmaxBackwardArgs::documents,
                 &CausalSoftmaxBackwardArgs::dy,
                 &CausalSoftmaxBackwardArgs::dx>,
    .cross_entropy =
        Enqueued<&K::cross_entropy, &CrossEntropyArgs::logits,
                 &CrossEntropyArgs::targets, &CrossEntropyArgs::loss_sum,
                 &CrossEntropyArgs::count, &CrossEntropyArgs::losses,
                 &CrossEntropyArgs::parts>,
    .cross_entropy_parts =
        Enqueued<&K::cross_entropy_parts, &CrossEntropyPartsArgs::logits,
                 &CrossEntropyPartsArgs::targets,
                 &CrossEntropyPartsArgs::parts>,
    .adamw = Enqueued<&K::adamw, &AdamWArgs::weights, &AdamWArgs::gradients,
                      &AdamWArgs::first_moment, &AdamWArgs::second_moment,
                      &AdamWArgs::parameters>,
    .adafactor =
        Enqueued<&K::adafactor, &AdafactorArgs::weights,
                 &AdafactorArgs::gradients, &AdafactorArgs::row_moment,
                 &AdafactorArgs::column_moment, &AdafactorArgs::second_moment,
                 &AdafactorArgs::parameters, &AdafactorArgs::workspace>,
    .sgd = Enqueued<&K::sgd, &SgdArgs::weights, &SgdArgs::gradients,
                    &SgdArgs::momentum_buffer, &SgdArgs::parameters>,
    .load_step = Enqueued<&K::load_step, &LoadStepArgs::weights,
                          &LoadStepArgs::load, &LoadStepArgs::parameters>,
    .average =
        Enqueued<&K::average, &AverageArgs::weights, &AverageArgs::average>,
    .sum_of_squares = Enqueued<&K::sum_of_squares, &SumOfSquaresArgs::x,
                               &SumOfSquaresArgs::result>,
    .add = Enqueued<&K::add, &AddArgs::x, &AddArgs::y>,
    .scale = Enqueued<&K::scale, &ScaleArgs::x>,
    .fill = Enqueued<&K::fill, &FillArgs::x>,
    .copy = Enqueued<&K::copy, &CopyArgs::x, &CopyArgs::y>,
    .fill_normal = Enqueued<&K::fill_normal, &FillNormalArgs::x>,
    .to_int4 =
        Enqueued<&K::to_int4, &Int4Args::elements, &Int4Args::compressed>,
    .from_int4 =
        Enqueued<&K::from_int4, &Int4Args::elements, &Int4Args::compressed>,
};

}  // namespace troupe
