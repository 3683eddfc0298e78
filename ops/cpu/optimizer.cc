#include "ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// Of two loops, that over f32 gradients or over those of the weights' copy.
template <typename G, typename OfF32, typename OfOwn>
auto LoopOf(OfF32 of_f32, OfOwn of_own) {
  if constexpr (std::is_same_v<G, float>) {
    return of_f32;
  } else {
    return of_own;
  }
}

// run(begin, end, decays): the elements [begin, end) in runs that decay alike.
template <typename Run>
void ForDecayRuns(const std::vector<int64_t>& turns, int64_t begin, int64_t end,
                  const Run& run) {
  size_t turn = 0;
  while (turn < turns.size() && turns[turn] <= begin) ++turn;
  while (begin < end) {
    const int64_t next =
        turn == turns.size() ? end : std::min(turns[turn], end);
    if (next > begin) run(begin, next, /*decays=*/turn % 2 == 0);
    begin = next;
    ++turn;
  }
}

}  // namespace

void AdamW(Device& device, const AdamWArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const double step = static_cast<double>(args.step);
  const double correction1 = 1.0 - std::pow(double{args.beta1}, step);
  const double correction2 = 1.0 - std::pow(double{args.beta2}, step);
  const double lr = args.learning_rate;
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    const auto adamw =
        LoopOf<G>(cpu.loops<T>().adamw, cpu.loops<T>().adamw_of_own);
    const auto run = [&](int64_t begin, int64_t end, bool decays) {
      adamw({.weights = DataFrom<float>(args.weights, begin),
             .gradients = DataFrom<G>(args.gradients, begin),
             .first_moment = DataFrom<float>(args.first_moment, begin),
             .second_moment = DataFrom<float>(args.second_moment, begin),
             .parameters = DataFrom<T>(args.parameters, begin),
             .beta1 = args.beta1,
             .beta2 = args.beta2,
             .epsilon = args.epsilon,
             .decay =
                 decays ? static_cast<float>(1.0 - lr * args.weight_decay) : 1,
             .step_size = static_cast<float>(lr / correction1),
             .root_scale = static_cast<float>(std::sqrt(correction2)),
             .gradient_scale = args.gradient_scale,
             .zero_gradients = args.zero_gradients},
            end - begin);
    };
    cpu.ForElements(args.weights.elements(), [&](int64_t begin, int64_t end) {
      ForDecayRuns(args.decay_turns, begin, end, run);
    });
  });
}

void Lion(Device& device, const LionArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const double lr = args.learning_rate;
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    const auto lion =
        LoopOf<G>(cpu.loops<T>().lion, cpu.loops<T>().lion_of_own);
    const auto run = [&](int64_t begin, int64_t end, bool decays) {
      lion({.weights = DataFrom<float>(args.weights, begin),
            .gradients = DataFrom<G>(args.gradients, begin),
            .moment = DataFrom<float>(args.moment, begin),
            .parameters = DataFrom<T>(args.parameters, begin),
            .beta1 = args.beta1,
            .beta2 = args.beta2,
            .decay =
                decays ? static_cast<float>(1.0 - lr * args.weight_decay) : 1,
            .learning_rate = args.learning_rate,
            .gradient_scale = args.gradient_scale,
            .zero_gradients = args.zero_gradients},
           end - begin);
    };
    cpu.ForElements(args.weights.elements(), [&](int64_t begin, int64_t end) {
      ForDecayRuns(args.decay_turns, begin, end, run);
    });
  });
}

void Sgd(Device& device, const SgdArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    const auto sgd = LoopOf<G>(cpu.loops<T>().sgd, cpu.loops<T>().sgd_of_own);
    const auto run = [&](int64_t begin, int64_t end, bool decays) {
      sgd({.weights = DataFrom<float>(args.weights, begin),
           .gradients = DataFrom<G>(args.gradients, begin),
           .momentum_buffer = DataFrom<float>(args.momentum_buffer, begin),
           .parameters = DataFrom<T>(args.parameters, begin),
           .learning_rate = args.learning_rate,
           .momentum = args.momentum,
           .weight_decay = decays ? args.weight_decay : 0,
           .gradient_scale = args.gradient_scale,
           .nesterov = args.nesterov,
           .zero_gradients = args.zero_gradients},
          end - begin);
    };
    cpu.ForElements(args.weights.elements(), [&](int64_t begin, int64_t end) {
      ForDecayRuns(args.decay_turns, begin, end, run);
    });
  });
}

}  // namespace troupe::cpu
