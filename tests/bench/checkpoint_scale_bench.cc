// What a checkpoint of a large model costs those that put it together: the
// scheduler, which gathers what all ranks say, and rank 0, which commits. The
// job is planned, and each rank's shard is described as the rank itself would
// describe it; the shards are files of the right length with nothing in them.
//
//   bazel run //tests/bench:checkpoint_scale_bench [-- DIRECTORY]
//
// Memory is what each part takes beside what the process had before it.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/roles.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/checkpoint_gather.h"
#include "scheduler/planner/planner.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/commit.h"
#include "tests/bench/machine_span.h"
#include "worker/engine/rank_shard.h"
#include "worker/rank/resident_memory.h"
#include "worker/rank/unit_state.h"

namespace troupe {
namespace {

constexpr int kPipeline = 16;
constexpr int kData = 8;
constexpr int kTensor = 8;
constexpr int kRanks = kPipeline * kData * kTensor;

// 861 billion parameters.
JobSpec LargeJob(const std::string& directory) {
  JobSpec job;
  job.set_name("large");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_num_hidden_layers(164);
  model.set_hidden_size(20480);
  model.set_num_attention_heads(160);
  model.set_num_key_value_heads(8);
  model.set_intermediate_size(70656);
  model.set_vocab_size(128256);
  model.set_max_position_embeddings(8192);
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000);
  training.set_sequence_length(4096);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(kData * 2 * kPipeline);
  training.set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-4);
  job.mutable_checkpoint()->set_directory(directory);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(kPipeline);
  parallelism.set_data(kData);
  parallelism.set_tensor(kTensor);
  parallelism.set_zero(1);
  return job;
}

Plan PlanOf(const JobSpec& job) {
  std::vector<WorkerDescription> workers;
  for (int r = 0; r < kRanks; ++r) {
    WorkerDescription& worker = workers.emplace_back();
    worker.set_name(absl::StrCat("w", r));
    worker.set_host(absl::StrCat("host", r / 8));
    worker.set_threads(8);
  }
  absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  CHECK_OK(plan.status());
  return *std::move(plan);
}

// What the rank's SNAPSHOTs would collect, of memory that is not there.
std::vector<StateTensor> TensorsOf(const Plan& plan, int rank) {
  static char nothing;
  std::vector<StateTensor> tensors;
  for (const Placement& placement : RoleOf(plan, rank).placements()) {
    for (int part = 0; part < placement.parts_size(); ++part) {
      const UnitFlatBuffers memory = {
          .parameters = &nothing,
          .optimizer_state = &nothing,
          .holds = AtRestWith(plan, placement, part, rank).rests};
      const Range duty = DutyOf(plan, placement, part, rank);
      if (duty.size() == 0) continue;
      for (StateTensor& tensor : UnitStateTensors(
               plan.job().optimizer(), plan.units(placement.unit()), memory,
               {.mesh = &plan.mesh(), .rank = rank}, duty)) {
        tensors.push_back(std::move(tensor));
      }
    }
  }
  return tensors;
}

ShardFile DescribeShard(const Plan& plan, int rank) {
  ShardFile shard;
  shard.file.name = absl::StrFormat("rank-%05d.safetensors", rank);
  for (const StateTensor& tensor : TensorsOf(plan, rank)) {
    ManifestTensor described = {tensor.name, StoredDType::kF32, tensor.shape};
    for (const StateBox& box : tensor.boxes) {
      described.shards.push_back(
          {shard.file.name,
           tensor.boxes.size() == 1
               ? tensor.name
               : absl::StrCat(tensor.name, FormatBox(box.whole)),
           box.whole});
    }
    shard.file.bytes += tensor.elements * sizeof(float);
    shard.tensors.push_back(std::move(described));
  }
  shard.file.blocks.resize((shard.file.bytes + kBlockBytes - 1) / kBlockBytes);
  return shard;
}

// All ranks' shards, as far as the commit looks at them; what ranks say of
// them.
struct Written {
  std::vector<ShardRecord> records;
  int64_t shards = 0;
  int64_t description_bytes = 0;
  int64_t largest_description = 0;
};

Written WriteAll(const Plan& plan, const CheckpointAttempt& attempt) {
  const auto directory = BeginCheckpoint(attempt);
  CHECK_OK(directory.status());
  Written written;
  for (int rank = 0; rank < kRanks; ++rank) {
    const ShardFile shard = DescribeShard(plan, rank);
    for (const ManifestTensor& tensor : shard.tensors) {
      written.shards += static_cast<int64_t>(tensor.shards.size());
    }
    const std::string path = absl::StrCat(*directory, "/", shard.file.name);
    std::ofstream(path).flush();
    std::filesystem::resize_file(path, shard.file.bytes);
    const auto receipt = WriteDescription(*directory, shard);
    CHECK_OK(receipt.status());
    ShardRecord& record = written.records.emplace_back();
    record.set_file(receipt->file);
    record.set_bytes(static_cast<int64_t>(receipt->bytes));
    record.set_description_file(receipt->description);
    record.set_description_bytes(
        static_cast<int64_t>(receipt->description_bytes));
    record.set_description_crc32c(receipt->description_crc32c);
    written.description_bytes += record.description_bytes();
    written.largest_description =
        std::max(written.largest_description, record.description_bytes());
  }
  return written;
}

// In a process of its own, so that its memory is its own.
void Measure(const std::string& what, const std::function<void()>& run) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const RealClock clock;
    const int64_t before = ResidentMemoryBytes();
    const int64_t begin = clock.MonotonicNanos();
    run();
    const double seconds =
        static_cast<double>(clock.MonotonicNanos() - begin) * 1e-9;
    rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    std::printf("%-56s %8.2f s %8.0f MB\n", what.c_str(), seconds,
                static_cast<double>(usage.ru_maxrss * 1024 - before) * 1e-6);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0) << what;
}

// What the scheduler does from the first rank's message to the commit's.
void GatherAll(const std::vector<ShardRecord>& records) {
  CheckpointGather gather(kRanks);
  std::optional<CheckpointCommit> commit;
  for (int rank = 0; rank < kRanks; ++rank) {
    CheckpointShard shard;
    shard.mutable_ref()->set_rank(rank);
    shard.set_step(50);
    shard.set_write(1);
    *shard.mutable_shard() = records[rank];
    CheckpointShard heard;
    CHECK(heard.ParseFromString(shard.SerializeAsString()));
    commit = gather.Add(heard).commit;
  }
  CHECK(commit.has_value());
  std::printf("%-56s %8.2f MB\n", "the commit's message to rank 0",
              static_cast<double>(commit->SerializeAsString().size()) * 1e-6);
}

void Run(const std::string& directory) {
  const Plan plan = PlanOf(LargeJob(directory));
  const CheckpointAttempt attempt = {
      .dir = directory, .step = 50, .token = "bench"};
  const Written written = WriteAll(plan, attempt);
  double bytes = 0;
  for (const ShardRecord& record : written.records) bytes += record.bytes();
  std::printf(
      "%.1f billion parameters over %d ranks (pipeline %d x data %d x "
      "tensor %d, zero 1): %d shards in files of %.2f TB, described in "
      "%.1f MB, of a rank at most %.2f MB\n",
      static_cast<double>(plan.derived().parameters()) * 1e-9, kRanks,
      kPipeline, kData, kTensor, static_cast<int>(written.shards),
      bytes * 1e-12, static_cast<double>(written.description_bytes) * 1e-6,
      static_cast<double>(written.largest_description) * 1e-6);
  Measure("scheduler: gathers all shards", [&] { GatherAll(written.records); });
  Measure("rank 0: commits", [&] {
    CHECK_OK(CommitShards(attempt, plan, {.created = absl::UnixEpoch()},
                          written.records, {}, nullptr)
                 .status());
  });
  const std::string path = CheckpointPath(directory, attempt.step);
  std::printf("%-56s %8.1f MB\n", "manifest.json",
              static_cast<double>(std::filesystem::file_size(
                  absl::StrCat(path, "/", kManifestFile))) *
                  1e-6);
  Measure("a rank that resumes: reads the manifest",
          [&] { CHECK_OK(ReadManifest(path).status()); });
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  const std::string directory =
      argc > 1 ? argv[1]
               : (std::filesystem::temp_directory_path() /
                  absl::StrCat("checkpoint-scale-", getpid()))
                     .string();
  troupe::MachineSpan machine(1);
  troupe::Run(directory);
  std::printf("%s\n", machine.Line().c_str());
  std::filesystem::remove_all(directory);
  return 0;
}
