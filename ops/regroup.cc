#include "ops/regroup.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckRound(const RoundOfRows& round) {
  CHECK_DTYPE(round.offsets, DType::kI32);
  CHECK(round.offsets.dense() && round.offsets.rank() == 2)
      << "offsets are " << round.offsets.ShapeString();
  const int64_t ranks = round.offsets.rows();
  const int64_t experts = round.offsets.columns() - 1;
  CHECK(experts > 0 && experts % ranks == 0)
      << experts << " experts on " << ranks << " ranks";
  CHECK(round.rank >= 0 && round.rank < ranks)
      << "rank " << round.rank << " of " << ranks;
  CHECK(round.number >= 0 && round.rows_max > 0)
      << "round " << round.number << " of " << round.rows_max << " rows";
}

void CheckRows(const RegroupArgs& args) {
  CheckRound(args.round);
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.y, args.x);
  CHECK_EQ(args.x.rows(), args.round.rows_max);
}

}  // namespace

void Regroup(Device& device, const RegroupArgs& args) {
  CheckRows(args);
  device.kernels().regroup(device, args);
}

void Ungroup(Device& device, const RegroupArgs& args) {
  CheckRows(args);
  device.kernels().ungroup(device, args);
}

void OwnOffsets(Device& device, const OwnOffsetsArgs& args) {
  CheckRound(args.round);
  const int64_t ranks = args.round.offsets.rows();
  const int64_t experts = args.round.offsets.columns() - 1;
  CHECK_ELEMENTS(args.own_offsets, DType::kI32, experts / ranks + 1);
  device.kernels().own_offsets(device, args);
}

}  // namespace troupe
