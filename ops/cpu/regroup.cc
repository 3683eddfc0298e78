#include "ops/regroup.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// Consecutive rows of one expert from one source. Ascending in `grouped`,
// without gaps.
struct Block {
  int64_t received = 0;
  int64_t grouped = 0;
  int64_t rows = 0;
};

std::vector<Block> BlocksOf(const RoundOfRows& round) {
  std::vector<Block> blocks;
  RoundsOf(round).ForBlocks(
      round.rank, round.number,
      [&](int, int, const RowSpan& received, int64_t grouped) {
        if (received.size() == 0) return;
        CHECK_LE(grouped + received.size(), round.rows_max);
        blocks.push_back({received.begin, grouped, received.size()});
      });
  return blocks;
}

// The block that has this grouped row.
size_t BlockAt(const std::vector<Block>& blocks, int64_t row) {
  const auto next = std::upper_bound(
      blocks.begin(), blocks.end(), row,
      [](int64_t at, const Block& block) { return at < block.grouped; });
  return next - blocks.begin() - 1;
}

// copy(received, grouped, rows) of runs of rows.
template <typename Copy>
void ForRuns(Device& device, const RegroupArgs& args, const Copy& copy) {
  const std::vector<Block> blocks = BlocksOf(args.round);
  if (blocks.empty()) return;
  const int64_t rows = blocks.back().grouped + blocks.back().rows;
  CpuDevice::From(device).ForRows(
      rows, args.x.columns(), [&](int64_t begin, int64_t end) {
        size_t at = BlockAt(blocks, begin);
        while (begin < end) {
          const Block& block = blocks[at++];
          const int64_t into = begin - block.grouped;
          const int64_t run = std::min(block.rows - into, end - begin);
          copy(block.received + into, begin, run);
          begin += run;
        }
      });
}

struct Bytes {
  explicit Bytes(const RegroupArgs& args)
      : row(args.x.columns() * DTypeBytes(args.x.dtype())),
        x(static_cast<const char*>(args.x.raw())),
        y(static_cast<char*>(args.y.raw())) {}

  void Copy(int64_t from, int64_t to, int64_t rows) const {
    std::memcpy(y + to * row, x + from * row, rows * row);
  }

  int64_t row;
  const char* x;
  char* y;
};

}  // namespace

void Regroup(Device& device, const RegroupArgs& args) {
  ForRuns(
      device, args,
      [bytes = Bytes(args)](int64_t received, int64_t grouped, int64_t rows) {
        bytes.Copy(received, grouped, rows);
      });
}

void Ungroup(Device& device, const RegroupArgs& args) {
  ForRuns(
      device, args,
      [bytes = Bytes(args)](int64_t received, int64_t grouped, int64_t rows) {
        bytes.Copy(grouped, received, rows);
      });
}

void OwnOffsets(Device&, const OwnOffsetsArgs& args) {
  int32_t* const own = args.own_offsets.data<int32_t>();
  const int64_t experts = args.own_offsets.elements() - 1;
  std::fill(own, own + experts + 1, 0);
  RoundsOf(args.round)
      .ForBlocks(args.round.rank, args.round.number,
                 [&](int expert, int, const RowSpan& received, int64_t) {
                   own[expert + 1] += static_cast<int32_t>(received.size());
                 });
  for (int64_t expert = 0; expert < experts; ++expert) {
    own[expert + 1] += own[expert];
  }
}

}  // namespace troupe::cpu
