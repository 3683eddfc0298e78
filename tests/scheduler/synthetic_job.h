// Jobs on the synthetic model, for tests of schedules: equal units, each of
// which takes 1 s a pass unless said otherwise.
#ifndef TROUPE_TESTS_SCHEDULER_SYNTHETIC_JOB_H_
#define TROUPE_TESTS_SCHEDULER_SYNTHETIC_JOB_H_

#include <algorithm>
#include <string>

#include "proto/job.pb.h"

namespace troupe {

struct SyntheticSize {
  int pipeline = 1;
  int data = 1;
  std::string schedule = "1f1b";
  int micro_batches = 1;
  int virtual_stages = 0;  // 0: the schedule's default
  int units = 0;           // 0: one for each rank
  double forward_us = 1e6;
  double backward_input_us = 1e6;
  double backward_weight_us = 1e6;
};

// Not resolved.
inline JobSpec SyntheticJob(const SyntheticSize& size) {
  JobSpec job;
  job.set_name("synthetic");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("synthetic");
  model.set_units(size.units > 0 ? size.units : size.pipeline);
  model.add_forward_us(size.forward_us);
  model.add_backward_input_us(size.backward_input_us);
  model.add_backward_weight_us(size.backward_weight_us);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(10);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(size.data * size.micro_batches);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(size.pipeline);
  parallelism.set_data(size.data);
  parallelism.set_pipeline_schedule(size.schedule);
  if (size.virtual_stages > 0) {
    parallelism.set_virtual_stages(size.virtual_stages);
  }
  return job;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_SYNTHETIC_JOB_H_
