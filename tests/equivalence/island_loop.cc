#include "tests/equivalence/island_loop.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "ops/cpu/device.h"
#include "proto/base/bf16.h"
#include "proto/base/check.h"
#include "proto/plan/lr_schedule.h"
#include "storage/dataset/sample_reader.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {
namespace {

using Values = std::vector<double>;

// As a change goes to other islands and comes back.
void RoundAs(const std::string& compress, Values& values) {
  if (compress == "none") {
    for (double& value : values) value = static_cast<float>(value);
    return;
  }
  if (compress == "bf16") {
    for (double& value : values) {
      value = FromBF16(ToBF16(static_cast<float>(value)));
    }
    return;
  }
  CHECK(compress == "int4") << compress;
  constexpr size_t kBlock = 64;
  for (size_t first = 0; first < values.size(); first += kBlock) {
    const size_t end = std::min(values.size(), first + kBlock);
    double largest = 0;
    for (size_t i = first; i < end; ++i) {
      largest = std::max(largest, std::abs(values[i]));
    }
    const double scale = largest / 7;
    for (size_t i = first; scale > 0 && i < end; ++i) {
      values[i] = std::nearbyint(values[i] / scale) * scale;
    }
  }
}

class Loop {
 public:
  explicit Loop(const JobSpec& job)
      : job_(job),
        spec_(job.training()),
        islands_(job.parallelism().islands()),
        device_(NewCpuDevice({.threads = 1})),
        data_(SampleReader::Create(
                  {.sources = {{job.data().tokens()}},
                   .sequence_length =
                       static_cast<uint64_t>(spec_.sequence_length()),
                   .validation_fraction = job.data().validation_fraction(),
                   .seed = spec_.seed()})
                  .value()) {
    inner_ = job.optimizer();
    inner_.clear_outer();
    for (int i = 0; i < islands_; ++i) {
      models_.push_back(std::make_unique<ModelRunner>(
          *device_, job.model(),
          BuildUnitsOptions{
              .shape = {.sequences = spec_.micro_batch_size(),
                        .sequence_length = spec_.sequence_length(),
                        .dropout = spec_.dropout()},
              .seed = spec_.seed()},
          ModelRunner::Training{.optimizer = inner_}));
      models_.back()->Initialize(spec_.seed());
    }
    for (int unit = 0; unit < models_[0]->units(); ++unit) {
      const absl::Span<float> now = models_[0]->parameters(unit);
      outer_.emplace_back(now.begin(), now.end());
      momentum_.emplace_back(now.size(), 0);
    }
  }

  // Of one island, before any exchange.
  IslandStep Step(int island, int64_t step) {
    ModelRunner& model = *models_[island];
    const int64_t samples = spec_.global_batch_size() / islands_;
    const double tokens =
        static_cast<double>(samples) * spec_.sequence_length();
    model.scalars()[0] = 0;
    for (int64_t at = 0; at < samples; at += spec_.micro_batch_size()) {
      const int64_t first = island * samples + at;
      const std::vector<int32_t> batch =
          Read((step - 1) * spec_.global_batch_size() + first);
      model.Run(batch.data(), {.step = step,
                               .first_sample = first,
                               .training = true,
                               .gradient_scale = 1 / tokens,
                               .token_scale = 1 / tokens});
    }
    OptimizerSpec optimizer = inner_;
    optimizer.set_lr(LearningRate(job_, step));
    const double norm = model.Step(optimizer, step, spec_.gradient_clipping());
    return {.loss = model.scalars()[0] / tokens, .gradient_norm = norm};
  }

  // What islands learned up to the step before, where that is exchanged while
  // they go on.
  void BeginExchanges(int64_t step) {
    if (job_.islands().overlap() == 0) return;
    for (int unit = 0; unit < models_[0]->units(); ++unit) {
      if (IsDue(unit, step - 1)) under_way_[unit] = MeanChange(unit);
    }
  }

  void EndExchanges(int64_t step) {
    const bool last = step == spec_.steps();
    const double mixing = job_.islands().mixing();
    for (auto& [unit, change] : under_way_) Merge(unit, change, mixing);
    under_way_.clear();
    for (int unit = 0; unit < models_[0]->units(); ++unit) {
      const bool waits = job_.islands().overlap() == 0 && IsDue(unit, step);
      if (waits || last) Merge(unit, MeanChange(unit), last ? 0 : mixing);
    }
  }

 private:
  bool IsDue(int unit, int64_t step) const {
    const IslandsSpec& islands = job_.islands();
    const int64_t fragment = unit % islands.fragments();
    return step % islands.every() ==
           fragment * islands.every() / islands.fragments();
  }

  Values MeanChange(int unit) const {
    const std::string& compress = job_.islands().compress();
    const Values& weights = outer_[unit];
    Values mean(weights.size(), 0);
    for (const auto& model : models_) {
      const absl::Span<float> now = model->parameters(unit);
      Values change(weights.size());
      for (size_t i = 0; i < change.size(); ++i) {
        change[i] = weights[i] - now[i];
      }
      RoundAs(compress, change);
      for (size_t i = 0; i < change.size(); ++i) {
        mean[i] += change[i] / islands_;
      }
    }
    RoundAs(compress, mean);
    return mean;
  }

  void Merge(int unit, const Values& change, double mixing) {
    const OuterSpec& outer = job_.islands().outer();
    Values& weights = outer_[unit];
    for (size_t i = 0; i < weights.size(); ++i) {
      double& momentum = momentum_[unit][i];
      momentum = outer.momentum() * momentum + change[i];
      const double step = outer.momentum() == 0
                              ? change[i]
                              : change[i] + outer.momentum() * momentum;
      weights[i] -= outer.lr() * step;
    }
    for (const auto& model : models_) {
      const absl::Span<float> now = model->parameters(unit);
      for (size_t i = 0; i < weights.size(); ++i) {
        now[i] =
            static_cast<float>(mixing * now[i] + (1 - mixing) * weights[i]);
      }
    }
  }

  std::vector<int32_t> Read(int64_t sample) const {
    const int64_t sequences = spec_.micro_batch_size();
    const int64_t length = spec_.sequence_length();
    std::vector<int32_t> batch(2 * sequences * length);
    const absl::Span<int32_t> all(batch);
    for (int64_t i = 0; i < sequences; ++i) {
      CHECK_OK(data_.Read(
          sample + i,
          {.tokens = all.subspan(i * length, length),
           .targets = all.subspan((sequences + i) * length, length)}));
    }
    return batch;
  }

  const JobSpec& job_;
  const TrainingSpec& spec_;
  const int islands_;
  const std::unique_ptr<Device> device_;
  const SampleReader data_;
  OptimizerSpec inner_;
  std::vector<std::unique_ptr<ModelRunner>> models_;  // by island
  std::vector<Values> outer_;                         // by unit
  std::vector<Values> momentum_;
  std::map<int, Values> under_way_;  // mean changes, by unit
};

}  // namespace

std::vector<std::vector<IslandStep>> TrainIslands(const JobSpec& job) {
  Loop loop(job);
  std::vector<std::vector<IslandStep>> steps(job.parallelism().islands());
  for (int64_t step = 1; step <= job.training().steps(); ++step) {
    loop.BeginExchanges(step);
    for (size_t island = 0; island < steps.size(); ++island) {
      steps[island].push_back(loop.Step(static_cast<int>(island), step));
    }
    loop.EndExchanges(step);
  }
  return steps;
}

}  // namespace troupe
