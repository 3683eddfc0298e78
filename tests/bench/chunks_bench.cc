// How many bytes move between a device and its host in a step, where
// parameters, gradients and activations rest on the host and the device has
// room for some of them (memory.chunk_megabytes): by the rule of what stays.
// The rules have the same plans and the same budgets, which are so much of the
// way from where nothing stays to where all does.
//
//   nothing      stays: what memory does without chunks
//   lru          what was used last the longest ago leaves first
//   patrickstar  arXiv 2108.05818 (patrickstar/core/eviction_policy.py): chunks
//                of 64 MB, the farthest next use leaves first; a chunk is in
//                one place, so that what leaves unchanged goes down, too
//   64 MB        chunk_megabytes: 64
//   auto         chunk_megabytes: auto
//
//   bazel run //tests/bench:chunks_bench
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/job.pb.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/find_program.h"
#include "proto/plan/operand.h"
#include "scheduler/passes/assign_slots.h"
#include "scheduler/passes/move_between_tiers.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"

namespace troupe {
namespace {

struct Size {
  const char* name;
  int blocks;
  int width;
  int heads;
};
constexpr Size kSizes[] = {{"GPT-2 124M", 12, 768, 12},
                           {"GPT-2 1.5B", 48, 1600, 25}};
constexpr int kShares[] = {0, 10, 25, 50, 75, 90};  // of the way, percent

JobSpec JobOf(const Size& size, int micro_batches) {
  JobSpec job;
  job.set_name("chunks");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(size.blocks);
  model.set_hidden_size(size.width);
  model.set_num_attention_heads(size.heads);
  model.set_max_position_embeddings(1024);
  model.set_vocab_size(50304);
  job.mutable_data()->set_tokens("text.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(1000);
  training.set_sequence_length(1024);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(micro_batches);
  training.set_precision("bf16");
  training.set_gradient_clipping(0);
  job.mutable_optimizer()->set_lr(1e-4);
  MemorySpec& memory = *job.mutable_memory();
  memory.set_optimizer("host");
  memory.set_parameters("host");
  memory.set_gradients("host");
  memory.set_activations("host");
  return job;
}

std::vector<bool> LeastRecentlyUsed(const std::vector<ChunkUse>& uses,
                                    int64_t capacity) {
  struct Chunk {
    int last = 0;
    int end = 0;  // of its uses so far
  };
  std::map<int, int> uses_left;  // by chunk
  for (const ChunkUse& use : uses) ++uses_left[use.chunk];
  std::vector<bool> stays(uses.size(), true);
  std::map<int, Chunk> there;
  int64_t bytes = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    const ChunkUse& use = uses[i];
    const bool was_there = there.count(use.chunk) > 0;
    Chunk& chunk = there[use.chunk];
    chunk = {static_cast<int>(i), std::max(chunk.end, use.end)};
    if (!was_there) bytes += use.bytes;
    if (--uses_left[use.chunk] == 0) stays[i] = false;
    std::vector<std::pair<int, int>> idle;  // by end; and the chunk
    for (const auto& [number, of] : there) {
      if (of.end < use.begin) idle.push_back({of.end, number});
    }
    std::sort(idle.begin(), idle.end());
    for (const auto& [end, number] : idle) {
      if (bytes <= capacity && uses_left[number] > 0) continue;
      stays[there[number].last] = false;
      bytes -= uses[there[number].last].bytes;
      there.erase(number);
    }
  }
  return stays;
}

// Each that leaves moves twice.
std::vector<bool> PatrickStar(const std::vector<ChunkUse>& uses,
                              int64_t capacity) {
  std::vector<ChunkUse> alike = uses;
  for (ChunkUse& use : alike) use.moves = 1;
  return StayUntilNextUse(alike, capacity);
}

// As buffers are declared, and nothing moves yet.
Draft Declared(const JobSpec& job) {
  absl::StatusOr<Draft> draft = StartDraft(ResolveJob(job).value());
  CHECK_OK(draft.status());
  for (const Pass& pass : Passes()) {
    pass.run(*draft);
    if (pass.name == "declare buffers") break;
  }
  return *std::move(draft);
}

struct Moved {
  int64_t bytes = 0;      // in a step, both ways
  int64_t dropped = 0;    // copies that no move takes back
  int64_t on_device = 0;  // that the plan takes
};

// Not by megabytes where there are none.
Moved Move(Draft draft, absl::string_view megabytes,
           absl::optional<int64_t> device_bytes, StayRule rule) {
  MemorySpec& memory = *draft.plan.mutable_job()->mutable_memory();
  if (!megabytes.empty()) memory.set_chunk_megabytes(std::string(megabytes));
  if (device_bytes.has_value()) memory.set_device_bytes(*device_bytes);
  MoveBetweenTiers(rule, draft);
  const Role& role = draft.plan.roles(0);
  const Program& train = *FindProgram(role, Program::TRAIN);
  Moved moved = {.on_device = SlotBytes(draft.plan, role, DEVICE)};
  std::map<int, int64_t> fetched;  // by copy
  for (const Instruction& move : train.instructions()) {
    if (!IsMove(move.kind())) continue;
    const int from = move.operands(0).buffer();
    const int to = move.operands(1).buffer();
    const int64_t bytes = BytesMoved(train.buffers(from), train.buffers(to));
    moved.bytes += bytes;
    if (TierOf(train.buffers(to)) == DEVICE) fetched[to] = bytes;
    if (TierOf(train.buffers(from)) == DEVICE) fetched.erase(from);
  }
  for (const auto& [copy, bytes] : fetched) moved.dropped += bytes;
  return moved;
}

double Gigabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

void Run(const Size& size, int micro_batches) {
  const Draft draft = Declared(JobOf(size, micro_batches));
  const Moved nothing = Move(draft, "", absl::nullopt, StayUntilNextUse);
  const Moved all = Move(draft, "auto", absl::nullopt, StayUntilNextUse);
  for (const int share : kShares) {
    const int64_t budget =
        nothing.on_device + (all.on_device - nothing.on_device) * share / 100;
    const auto moved = [&](absl::string_view megabytes, StayRule rule) {
      return Move(draft, megabytes, budget, rule);
    };
    const Moved lru = moved("auto", LeastRecentlyUsed);
    const Moved patrickstar = moved("64", PatrickStar);
    const Moved chunks = moved("64", StayUntilNextUse);
    const Moved belady = moved("auto", StayUntilNextUse);
    std::printf("%-12s %6d %6d %% %8.2f %9.2f %8.2f %11.2f %8.2f %8.2f\n",
                size.name, micro_batches, share, Gigabytes(budget),
                Gigabytes(nothing.bytes), Gigabytes(lru.bytes),
                Gigabytes(patrickstar.bytes + patrickstar.dropped),
                Gigabytes(chunks.bytes), Gigabytes(belady.bytes));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace troupe

int main() {
  std::printf("%-12s %6s %8s %8s %9s %8s %11s %8s %8s\n", "GB a step", "micro",
              "room", "device", "nothing", "lru", "patrickstar", "64 MB",
              "auto");
  for (const troupe::Size& size : troupe::kSizes) {
    for (const int micro_batches : {1, 4}) troupe::Run(size, micro_batches);
  }
  return 0;
}
