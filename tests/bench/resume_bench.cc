// How long ranks take to resume from a checkpoint of 2 GB, and how much they
// read for it: all of them on this host, a thread each.
//
//   bazel run //tests/bench:resume_bench -- --ranks 4 --by tensor --dir
//   /mnt/disk
//
// The checkpoint is written first, by one rank, into a folder of its own that
// is removed at the end. Before each round its files are put out of the page
// cache. Time is from the first rank's begin to the last one's end; the bytes
// are those that the kernel says this process asked for. The last line says how
// the machine was meanwhile (machine_span.h).
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/plan/job_json.h"
#include "scheduler/planner/planner.h"
#include "storage/checkpoint/commit.h"
#include "storage/dataset/token_file_writer.h"
#include "storage/engine/make_engine.h"
#include "storage/tier/allocator.h"
#include "tests/bench/machine_span.h"
#include "worker/collective/key_value_store.h"
#include "worker/engine/starting_point.h"

namespace troupe {
namespace {

struct Options {
  int ranks = 1;
  std::string by = "pipeline";
  std::string architecture = "gpt2";
  int hidden_size = 1024;
  int rounds = 3;
  std::string dir = "/tmp";
};

// 160 million parameters, 218 of a Llama: with AdamW's moments 12 bytes each.
// Of a wider model fewer blocks.
JobSpec Job(const std::string& dir, const Options& options) {
  JobSpec job;
  job.set_name("resume");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture(options.architecture);
  model.set_num_hidden_layers(12 * 1024 * 1024 / options.hidden_size /
                              options.hidden_size);
  model.set_hidden_size(options.hidden_size);
  model.set_num_attention_heads(16);
  model.set_vocab_size(8192);
  model.set_max_position_embeddings(64);
  const std::string tokens = absl::StrCat(dir, "/tokens");
  auto writer = TokenFileWriter::Create(
      {.path = tokens, .vocab_size = 8192, .tokenizer = "none"});
  CHECK_OK(writer.status());
  CHECK_OK((*writer)->Append(std::vector<int32_t>(100'000, 7)));
  CHECK_OK((*writer)->Finish().status());
  job.mutable_data()->set_tokens(tokens);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(10);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(4);
  training.set_sequence_length(64);
  job.mutable_optimizer()->set_lr(1e-5);
  job.mutable_checkpoint()->set_directory(absl::StrCat(dir, "/checkpoints"));
  return job;
}

std::vector<TierBudget> Budgets() {
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(int64_t{1} << 40);
  return {budget};
}

Plan PlanOf(const JobSpec& job, int ranks) {
  std::vector<WorkerDescription> workers(ranks);
  for (int i = 0; i < ranks; ++i) {
    workers[i].set_name(absl::StrCat("worker-", i));
    workers[i].set_device("cpu");
    workers[i].set_threads(1);
    workers[i].set_host_cores(ranks);
    *workers[i].add_budgets() = Budgets()[0];
  }
  absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  CHECK_OK(plan.status());
  return *std::move(plan);
}

// Says nothing to anybody.
class Silent final : public RankListener {
 public:
  absl::Status OnReady(int64_t) override { return absl::OkStatus(); }
  absl::Status OnStep(const StepRecord&, absl::Span<const double>,
                      const RankTimeline*) override {
    return absl::OkStatus();
  }
  absl::Status OnShardWritten(const WrittenShard&) override {
    return absl::OkStatus();
  }
  absl::Status OnUnwritten(int64_t, const std::string&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<absl::optional<std::vector<ShardRecord>>> AwaitShards(
      int64_t) override {
    return absl::nullopt;
  }
  absl::Status OnCommitted(const CheckpointRecord&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<CheckpointEnd> AwaitEnd(int64_t) override {
    return CheckpointEnd();
  }
};

struct Rank {
  Rank(const Plan& plan, int rank)
      : device(NewCpuDevice({.threads = 1})),
        arenas(Budgets(), allocator),
        io(MakeIoEngine({.kind = "thread_pool", .log = false}).value()),
        state(RankState::Create(
                  std::make_shared<Plan>(AssignmentPlan(plan, rank)), *device,
                  arenas, log)
                  .value()) {}

  void Resume(KeyValueStore& store) {
    Silent listener;
    const auto start = SetStartingPoint(
        {.resume = "latest",
         .last_step = 10,
         .name = absl::StrCat("worker-", state->rank())},
        {.disk = {*io, log}, .store = store}, *state, listener);
    CHECK_OK(start.status());
    CHECK_EQ(start->position.step, 5);
  }

  const RealClock clock;
  DiskLog log{clock};
  HostAllocator allocator;
  const std::unique_ptr<Device> device;
  const TierArenas arenas;
  const std::unique_ptr<IoEngine> io;
  const std::unique_ptr<RankState> state;
};

// What a run of the job would have left after its fifth step.
void Save(const JobSpec& job) {
  const Rank rank(PlanOf(job, 1), 0);
  CHECK_OK(InitializeFromSeed(*rank.state));
  std::vector<ShardToWrite> shards;
  for (const int unit : rank.state->HeldUnits()) {
    for (const StateTensor& tensor : UnitStateTensors(
             rank.state->plan->job().optimizer(), rank.state->plan->units(unit),
             rank.state->StateOfUnit(unit).front())) {
      shards.push_back({.name = tensor.name,
                        .dtype = StoredDType::kF32,
                        .shape = tensor.shape,
                        .box = WholeTensor(tensor.shape),
                        .data = tensor.data.memory()});
    }
  }
  const CheckpointAttempt attempt = {
      .dir = job.checkpoint().directory(), .step = 5, .token = "bench"};
  CHECK_OK(BeginCheckpoint(attempt).status());
  const auto shard = WriteShardFile(*rank.io, attempt, {.rank = 0}, shards);
  CHECK_OK(shard.status());
  Manifest manifest;
  manifest.step = 5;
  manifest.job = JobJson(rank.state->plan->job());
  CHECK_OK(CommitCheckpoint(attempt, manifest, {*shard}).status());
}

void PutOutOfCache(const std::string& dir) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (!entry.is_regular_file()) continue;
    const int fd = open(entry.path().c_str(), O_RDONLY);
    CHECK_GE(fd, 0);
    CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
  }
}

// By read and pread, of this process.
int64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t bytes = 0;
  CHECK(io >> name >> bytes && name == "rchar:");
  return bytes;
}

void Measure(const JobSpec& job, const Options& options) {
  const Plan plan = PlanOf(job, options.ranks);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(plan, rank));
    CHECK_OK(InitializeFromSeed(*ranks.back()->state));  // touches its memory
  }
  MachineSpan machine(options.ranks);
  for (int round = 0; round < options.rounds; ++round) {
    PutOutOfCache(job.checkpoint().directory());
    InMemoryStore store;
    const int64_t read = BytesRead();
    const int64_t begin = RealClock().MonotonicNanos();
    std::vector<std::thread> threads;
    for (const auto& rank : ranks) {
      threads.emplace_back([&] { rank->Resume(store); });
    }
    for (std::thread& thread : threads) thread.join();
    std::printf("%s, %s %d: %.2f s, %.2f GB read\n",
                options.architecture.c_str(), options.by.c_str(), options.ranks,
                (RealClock().MonotonicNanos() - begin) * 1e-9,
                (BytesRead() - read) * 1e-9);
    std::fflush(stdout);
    machine.Probe();
  }
  std::printf("%s\n", machine.Line().c_str());
}

// How the ranks share the model: `by` with a value for each of them.
void Share(const Options& options, ParallelismSpec& parallelism) {
  if (options.by == "pipeline") parallelism.set_pipeline(options.ranks);
  if (options.by == "tensor") parallelism.set_tensor(options.ranks);
  if (options.by == "data" || options.by == "zero") {
    parallelism.set_data(options.ranks);
  }
  if (options.by == "zero") parallelism.set_zero(3);
}

void Run(const Options& options) {
  std::string dir = absl::StrCat(options.dir, "/resume-bench-XXXXXX");
  CHECK(mkdtemp(dir.data()) != nullptr) << dir;
  JobSpec job = Job(dir, options);
  Save(job);
  Share(options, *job.mutable_parallelism());
  Measure(job, options);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CLI::App app("Times how ranks resume from a checkpoint of 2 GB.");
  troupe::Options options;
  app.add_option("--ranks", options.ranks, "on this host");
  app.add_option("--by", options.by,
                 "pipeline: stages; data: each holds all; tensor: each a piece "
                 "of each matrix; zero: each a range of each unit")
      ->check(CLI::IsMember({"pipeline", "data", "tensor", "zero"}));
  app.add_option("--architecture", options.architecture, "gpt2 or llama");
  app.add_option("--hidden-size", options.hidden_size,
                 "of a model that is as large all the same")
      ->check(CLI::IsMember({1024, 2048}));
  app.add_option("--rounds", options.rounds);
  app.add_option("--dir", options.dir, "where 3 GB are free");
  CLI11_PARSE(app, argc, argv);
  troupe::Run(options);
}
