// The jobs that are benchmarked: GPT-2 124M, a Llama of its size and a Mixtral
// of whose parameters a token meets as many; for GPUs also GPT-2 1.5B and a
// Llama of 1.1B. On tokens at random. pytorch_models.py has the same.
#ifndef TROUPE_TESTS_BENCH_BENCH_JOB_H_
#define TROUPE_TESTS_BENCH_BENCH_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

struct BenchJobOptions {
  std::string model = "gpt2";     // one of BenchModels()
  std::string precision = "f32";  // f32, bf16, fp16
  std::string device = "cpu";     // or a GPU that all workers share, "cuda:0"
  int workers = 1;  // data-parallel, but for `tensor` and `context`
  int tensor = 1;   // of them, ranks that units are cut over
  int context = 1;  // ranks that sequences are cut over
  std::string context_method = "ulysses";
  bool sequence_parallel = false;
  int zero = 0;            // over the replicas
  int expert = 1;          // of them, ranks that share experts
  MemorySpec memory = {};  // recomputation and tiers
  bool nvme = false;       // workers have an nvme tier
  int threads = 2;         // of each worker
  int batch = 1;           // sequences of a micro-batch
  int micro_batches = 1;   // of a replica in a step
  int sequence_length = 1024;
  int vocabulary = 0;       // in place of the model's; 0: that
  int document_tokens = 0;  // of each document; 0: the file does not say
  bool isolate_documents = false;
};

// Sequences of one step, over all replicas, times their length.
int64_t TokensPerStep(const BenchJobOptions& options);

std::vector<std::string> BenchModels();

// Those of this host, which is measured.
std::vector<WorkerDescription> BenchWorkers(const BenchJobOptions& options);

// As the scheduler would plan it for workers of this host, whose errors it
// returns: that the job does not fit into a GPU, for one, or that it cannot be
// cut so over its workers. Writes the token file `tokens`. CHECKs the other
// options.
absl::StatusOr<Plan> BenchPlan(const BenchJobOptions& options,
                               const std::string& tokens,
                               const std::vector<WorkerDescription>& workers);
absl::StatusOr<Plan> BenchPlan(const BenchJobOptions& options,
                               const std::string& tokens);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_BENCH_JOB_H_
