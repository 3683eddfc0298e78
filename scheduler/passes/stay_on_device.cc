#include "scheduler/passes/stay_on_device.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/numbers.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/operand.h"

namespace troupe {
namespace {

constexpr int64_t kBytesOfMegabyte = 1 << 20;

// Up to which values share a chunk; 0: none do.
int64_t ChunkBytes(const MemorySpec& memory) {
  double megabytes = 0;
  return absl::SimpleAtod(memory.chunk_megabytes(), &megabytes)
             ? static_cast<int64_t>(megabytes * kBytesOfMegabyte)
             : 0;
}

struct Chunks {
  std::vector<int> of_buffer;  // -1: it never is below and used on the device
  std::vector<int64_t> bytes;  // by chunk
};

// `buffers`: those that make them.
Chunks ChunksOf(const Program& program, std::vector<int> buffers,
                int64_t chunk_bytes) {
  const auto order = [&program](int b) {
    const Buffer& buffer = program.buffers(b);
    return std::make_tuple(buffer.kind(), buffer.micro_batch(),
                           buffer.copy_offset(), buffer.unit());
  };
  std::sort(buffers.begin(), buffers.end(),
            [&](int a, int b) { return order(a) < order(b); });
  Chunks chunks = {std::vector<int>(program.buffers_size(), -1), {}};
  const Buffer* before = nullptr;
  for (const int b : buffers) {
    const Buffer& buffer = program.buffers(b);
    const bool neighbours = before != nullptr &&
                            before->kind() == buffer.kind() &&
                            before->micro_batch() == buffer.micro_batch() &&
                            before->copy_offset() == buffer.copy_offset() &&
                            before->unit() + 1 == buffer.unit() &&
                            chunks.bytes.back() + buffer.bytes() <= chunk_bytes;
    if (!neighbours) chunks.bytes.push_back(0);
    chunks.of_buffer[b] = static_cast<int>(chunks.bytes.size()) - 1;
    chunks.bytes.back() += buffer.bytes();
    before = &buffer;
  }
  return chunks;
}

bool Changes(const Program& program, const TierRun& run) {
  return std::any_of(run.begin(), run.end(), [&](const TierUse& use) {
    return Writes(program.instructions(use.instruction).operands(use.operand));
  });
}

}  // namespace

RunsOnDevice::RunsOnDevice(const Program& program, const TierUses& uses,
                           const MemorySpec& memory) {
  struct OneRun {
    int buffer = 0;
    int last = 0;  // instruction
    ChunkUse use;
    bool changes = false;
  };
  std::vector<OneRun> runs;
  std::vector<int> buffers;
  for (int b = 0; b < program.buffers_size(); ++b) {
    const int way = TierOf(program.buffers(b)) - DEVICE;  // in moves
    if (way == 0) continue;
    const size_t first = runs.size();
    for (const TierRun& run : uses.RunsOf(b, {})) {
      if (run.front().tier != DEVICE) continue;
      OneRun& added = runs.emplace_back();
      added.buffer = b;
      added.last = run.back().instruction;
      added.changes = Changes(program, run);
      added.use = {
          .begin = uses.StepAt(run.front().instruction, DEVICE) - way,
          .end = uses.StepAt(added.last, DEVICE) + (added.changes ? way : 0)};
    }
    for (size_t r = first; r + 1 < runs.size(); ++r) {
      // What stays goes back behind its last change only, or not at all.
      const bool leaves =
          runs[r].changes &&
          (runs[r + 1].changes || !OutlivesProgram(program.buffers(b)));
      runs[r].use.moves = way * (leaves ? 2 : 1);
    }
    if (runs.size() > first) buffers.push_back(b);
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const OneRun& a, const OneRun& b) {
                     return a.use.begin < b.use.begin;
                   });
  const Chunks chunks = ChunksOf(program, buffers, ChunkBytes(memory));
  for (OneRun& run : runs) {
    run.use.chunk = chunks.of_buffer[run.buffer];
    run.use.bytes = chunks.bytes[run.use.chunk];
    const bool lasts = OutlivesProgram(program.buffers(run.buffer));
    Runs& of_item = lasts ? fetched_ : activations_;
    of_item.runs.push_back({.buffer = run.buffer, .last = run.last});
    of_item.uses.push_back(run.use);
  }
}

DeviceRoom RunsOnDevice::All() const {
  return {.fetched = MostAtOnce(fetched_.uses),
          .activations = MostAtOnce(activations_.uses)};
}

StayingRuns RunsOnDevice::Staying(const DeviceRoom& room, StayRule rule) const {
  StayingRuns staying;
  AddStaying(fetched_, rule(fetched_.uses, room.fetched), staying);
  AddStaying(activations_, rule(activations_.uses, room.activations), staying);
  return staying;
}

// Where each chunk stays from its first use to its last.
int64_t RunsOnDevice::MostAtOnce(const std::vector<ChunkUse>& uses) {
  std::map<int, ChunkUse> spans;
  for (const ChunkUse& use : uses) {
    ChunkUse& span = spans.emplace(use.chunk, use).first->second;
    span.end = std::max(span.end, use.end);
  }
  std::map<int, int64_t> changes;  // by moment
  for (const auto& [chunk, span] : spans) {
    changes[span.begin] += span.bytes;
    changes[span.end + 1] -= span.bytes;
  }
  int64_t now = 0;
  int64_t most = 0;
  for (const auto& [moment, change] : changes) {
    now += change;
    most = std::max(most, now);
  }
  return most;
}

void RunsOnDevice::AddStaying(const Runs& runs, const std::vector<bool>& stays,
                              StayingRuns& staying) {
  // Of each buffer its last run so far, while its chunk has stayed since.
  std::map<int, std::map<int, int>> open;  // by chunk
  for (size_t i = 0; i < runs.runs.size(); ++i) {
    const auto& [buffer, last] = runs.runs[i];
    std::map<int, int>& of_chunk = open[runs.uses[i].chunk];
    const auto [at, is_new] = of_chunk.emplace(buffer, last);
    if (!is_new) {
      staying.insert({buffer, at->second});
      at->second = last;
    }
    if (!stays[i]) of_chunk.clear();
  }
}

}  // namespace troupe
