#include "tests/scheduler/example_job.h"

#include "absl/strings/str_cat.h"

namespace troupe {

JobSpec ExampleJob(const JobSize& size) {
  JobSpec job;
  job.set_name("example");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(size.blocks);
  model.set_hidden_size(16);
  model.set_num_attention_heads(2);
  model.set_vocab_size(64);
  model.set_max_position_embeddings(8);
  job.mutable_data()->set_tokens("example.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(10);
  training.set_micro_batch_size(size.micro_batch_size);
  training.set_global_batch_size(size.data * size.micro_batches *
                                 size.micro_batch_size);
  job.mutable_optimizer()->set_lr(1e-3);
  job.mutable_parallelism()->set_data(size.data);
  // A block of width 16 has 3,280 parameters, 12.8 KiB.
  job.mutable_parallelism()->set_bucket_megabytes(0.015);
  return job;
}

std::vector<WorkerDescription> ExampleWorkers(int count) {
  std::vector<WorkerDescription> workers(count);
  for (int i = 0; i < count; ++i) {
    WorkerDescription& worker = workers[i];
    worker.set_name(absl::StrCat("worker-", i));
    worker.set_host("host");
    worker.set_device("cpu");
    worker.set_threads(1);
    worker.set_host_cores(count);
    TierBudget& budget = *worker.add_budgets();
    budget.set_tier(DEVICE);
    budget.set_bytes(int64_t{1} << 30);
    Calibration& calibration = *worker.mutable_calibration();
    calibration.set_device("cpu");
    calibration.set_threads(1);
    MatmulRate& matmul = *calibration.add_matmul();
    matmul.set_dtype(F32);
    matmul.set_m(64);
    matmul.set_n(64);
    matmul.set_k(64);
    matmul.set_flops_per_second(1e9);
    AttentionRate& attention = *calibration.add_attention();
    attention.set_dtype(F32);
    attention.set_length(8);
    attention.set_head_dim(8);
    attention.set_forward_flops_per_second(1e9);
    attention.set_backward_flops_per_second(1e9);
    calibration.set_memory_bytes_per_second(1e9);
    calibration.set_optimizer_bytes_per_second(1e9);
    calibration.set_elementwise_ops_per_second(1e9);
    calibration.mutable_loopback()->set_latency_us(10);
    calibration.mutable_loopback()->set_bytes_per_second(1e9);
  }
  return workers;
}

}  // namespace troupe
