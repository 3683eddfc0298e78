#include "tests/equivalence/delayed_gradients.h"

#include <algorithm>
#include <memory>

#include "absl/types/span.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/plan/lr_schedule.h"
#include "storage/dataset/sample_reader.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {
namespace {

class Reference {
 public:
  explicit Reference(const DelayedTraining& training)
      : training_(training),
        spec_(training.job.training()),
        device_(NewCpuDevice({.threads = 1})),
        model_(*device_, training.job.model(),
               {.shape = {.sequences = spec_.micro_batch_size(),
                          .sequence_length = spec_.sequence_length(),
                          .dropout = spec_.dropout()},
                .seed = spec_.seed()}),
        data_(SampleReader::Create(
                  {.sources = {{training.job.data().tokens()}},
                   .sequence_length =
                       static_cast<uint64_t>(spec_.sequence_length()),
                   .validation_fraction =
                       training.job.data().validation_fraction(),
                   .seed = spec_.seed()})
                  .value()) {
    for (size_t stage = 0; stage < training.stage_units.size(); ++stage) {
      stage_of_.insert(stage_of_.end(), training.stage_units[stage],
                       static_cast<int>(stage));
    }
    CHECK_EQ(stage_of_.size(), model_.units());
    model_.Initialize(spec_.seed());
    Remember();
  }

  DelayedStep Step(int64_t step) {
    const int64_t micro_batches =
        spec_.global_batch_size() / spec_.micro_batch_size();
    const int64_t of_replica =
        micro_batches / training_.job.parallelism().data();
    model_.scalars()[0] = 0;
    for (int64_t i = 0; i < micro_batches; ++i) {
      RunMicroBatch(step, i * spec_.micro_batch_size(),
                    static_cast<int>(i % of_replica));
    }
    for (int unit = 0; unit < model_.units(); ++unit) {
      SetWeights(unit, static_cast<int64_t>(weights_.size()) - 1);
    }
    OptimizerSpec optimizer = training_.job.optimizer();
    optimizer.set_lr(LearningRate(training_.job, step + 1));
    const double norm =
        model_.Step(optimizer, step + 1, spec_.gradient_clipping());
    Remember();
    return {.loss = model_.scalars()[0] / tokens_of_step(),
            .gradient_norm = norm};
  }

 private:
  double tokens_of_step() const {
    return static_cast<double>(spec_.global_batch_size()) *
           spec_.sequence_length();
  }

  void Remember() {
    weights_.emplace_back();
    for (int unit = 0; unit < model_.units(); ++unit) {
      const absl::Span<float> now = model_.parameters(unit);
      weights_.back().emplace_back(now.begin(), now.end());
    }
  }

  void SetWeights(int unit, int64_t version) {
    const std::vector<float>& then = weights_.at(version).at(unit);
    std::copy(then.begin(), then.end(), model_.parameters(unit).begin());
  }

  // Of the unit and of what it is tied to: a stage has its own copy of that.
  void SetWeightsFor(int unit, int64_t step, int micro_batch) {
    int64_t version = training_.version(
        {.stage = stage_of_[unit], .step = step, .micro_batch = micro_batch});
    int64_t oldest = 0;
    for (const int64_t restart : training_.restarts) {
      if (restart <= step) oldest = std::max(oldest, restart);
    }
    version = std::max(version, oldest);
    CHECK_LE(version, step);
    SetWeights(unit, version);
    for (const Unit::Tied& tied : model_.specs()[unit].tied()) {
      SetWeights(tied.unit(), version);
    }
  }

  // `first`: place of its first sequence in the global batch.
  void RunMicroBatch(int64_t step, int64_t first, int micro_batch) {
    const int64_t of = training_.batch ? training_.batch(step) : step;
    const std::vector<int32_t> batch =
        Read(of * spec_.global_batch_size() + first);
    const MicroBatchContext context = {.step = of + 1,
                                       .first_sample = first,
                                       .training = true,
                                       .gradient_scale = 1 / tokens_of_step(),
                                       .token_scale = 1 / tokens_of_step()};
    for (int unit = 0; unit < model_.units(); ++unit) {
      SetWeightsFor(unit, step, micro_batch);
      model_.ForwardUnit(unit, batch.data(), context);
    }
    for (int unit = model_.units() - 1; unit >= 0; --unit) {
      SetWeightsFor(unit, step, micro_batch);
      model_.BackwardUnit(unit, batch.data(), context);
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

  const DelayedTraining& training_;
  const TrainingSpec& spec_;
  const std::unique_ptr<Device> device_;
  ModelRunner model_;
  const SampleReader data_;
  std::vector<int> stage_of_;  // by unit
  // After how many steps, unit, element.
  std::vector<std::vector<std::vector<float>>> weights_;
};

}  // namespace

std::vector<DelayedStep> TrainWithDelays(const DelayedTraining& training) {
  Reference reference(training);
  std::vector<DelayedStep> steps;
  for (int64_t step = 0; step < training.job.training().steps(); ++step) {
    steps.push_back(reference.Step(step));
  }
  return steps;
}

}  // namespace troupe
