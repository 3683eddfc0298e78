#include "scheduler/tiers/loss_chunks.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/layout.h"
#include "proto/plan/made_again.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/statistics.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Each is three instructions and two exchanges of each micro-batch.
constexpr size_t kChunksMax = 256;

// The sizes of `pieces` even pieces of `all` samples or positions.
std::vector<int64_t> EvenSizes(int64_t all, int64_t pieces) {
  std::vector<int64_t> sizes;
  for (int c = 0; c < pieces; ++c) {
    sizes.push_back(
        EvenPiece(all, {.index = c, .count = static_cast<int>(pieces)}).size());
  }
  return sizes;
}

int64_t RoundedUp(int64_t number, int64_t divisor) {
  return (number + divisor - 1) / divisor;
}

// The ops from the one that makes the logits to the loss.
struct LossOps {
  int begin = -1;
  int end = -1;
};

LossOps LossOpsOf(const UnitTable& table) {
  for (int op = 0; op < table.ops_size(); ++op) {
    if (table.ops(op).kind() != Op::CROSS_ENTROPY) continue;
    const OpView loss(table, table.ops(op));
    return {.begin = MakerOf(table, loss.Input("logits")), .end = op + 1};
  }
  return {};
}

// Which of them can be done for some rows alone.
bool DoesRowsAlone(const UnitTable& table, const Op& op) {
  switch (op.kind()) {
    case Op::LINEAR:
      return !op.linear().bias() && !op.linear().adapted();
    case Op::CROSS_ENTROPY_PARTS:
    case Op::CROSS_ENTROPY:
      return true;
    case Op::EXCHANGE:
      return HoldsStatistics(table.tensors(op.inputs(0).tensor()));
    default:
      return false;
  }
}

// Writes the ops of each chunk in turn. What they make has the rows of the
// chunk; of what they read, Op.chunk says which.
class ChunkWriter {
 public:
  ChunkWriter(const LossOps& loss, UnitTable& table)
      : table_(table), all_(ShapeOf(LogitsOf(loss, table))) {
    for (int op = loss.begin; op < loss.end; ++op) {
      ops_.push_back(table.ops(op));
    }
  }

  void Write(int number, const ChunkShape& shape) {
    std::map<int, int> copies;  // of tensors that the ops make
    for (Op op : ops_) {
      op.mutable_chunk()->set_first_row(first_row_);
      op.mutable_chunk()->set_rows(shape.rows());
      for (Op::Operand& input : *op.mutable_inputs()) {
        const auto copy = copies.find(input.tensor());
        if (copy != copies.end()) input.set_tensor(copy->second);
      }
      for (Op::Operand& output : *op.mutable_outputs()) {
        const int whole = output.tensor();
        output.set_tensor(NewTensor(whole, number, shape));
        copies[whole] = output.tensor();
      }
      *table_.add_ops() = std::move(op);
    }
    first_row_ += shape.rows();
  }

  // The first chunk's stand in place of the whole ones.
  static const TensorSpec& LogitsOf(const LossOps& loss,
                                    const UnitTable& table) {
    return table.tensors(table.ops(loss.begin).outputs(0).tensor());
  }
  static ChunkShape ShapeOf(const TensorSpec& logits) {
    return {DimSize(logits.dims(0)), DimSize(logits.dims(1))};
  }

 private:
  int NewTensor(int whole, int number, const ChunkShape& shape) {
    if (number == 0) {
      wholes_.emplace(whole, table_.tensors(whole));
      SetRows(shape, *table_.mutable_tensors(whole));
      return whole;
    }
    TensorSpec& spec = *table_.add_tensors();
    spec = wholes_.at(whole);
    spec.set_name(absl::StrCat(spec.name(), " of chunk ", number));
    SetRows(shape, spec);
    return table_.tensors_size() - 1;
  }

  // Of what ranks put together, the first dim is that of all of them.
  void SetRows(const ChunkShape& shape, TensorSpec& spec) const {
    Dim::Section& samples = *spec.mutable_dims(0)->mutable_sections(0);
    samples.set_count(samples.count() / all_.samples * shape.samples);
    spec.mutable_dims(1)->mutable_sections(0)->set_count(shape.positions);
  }

  UnitTable& table_;
  const ChunkShape all_;
  std::vector<Op> ops_;
  std::map<int, TensorSpec> wholes_;
  int64_t first_row_ = 0;
};

absl::Status ChunkTable(int64_t rows_max, UnitTable& table) {
  const LossOps loss = LossOpsOf(table);
  if (loss.begin < 0) return absl::OkStatus();
  const std::vector<ChunkShape> chunks = ChunksOf(
      ChunkWriter::ShapeOf(ChunkWriter::LogitsOf(loss, table)), rows_max);
  if (chunks.size() < 2) return absl::OkStatus();
  if (chunks.size() > kChunksMax) {
    return FieldError(
        kLossChunksField,
        absl::StrCat(rows_max, " makes ", chunks.size(),
                     " chunks of a micro-batch on a rank, and at most ",
                     kChunksMax,
                     " are planned; use more tokens, or a smaller "
                     "training.micro_batch_size"));
  }
  for (int op = loss.begin; op < loss.end; ++op) {
    if (DoesRowsAlone(table, table.ops(op))) continue;
    return FieldError(
        kLossChunksField,
        absl::StrCat(
            "as the ranks share the head, the loss needs ",
            Op::Kind_Name(table.ops(op).kind()), " of \"",
            table.tensors(table.ops(op).inputs(0).tensor()).name(),
            "\", of all rows at once; leave it out, or share the head by "
            "columns of the vocabulary alone"));
  }
  ChunkWriter writer(loss, table);
  const std::vector<Op> behind(table.ops().begin() + loss.end,
                               table.ops().end());
  table.mutable_ops()->DeleteSubrange(loss.begin,
                                      table.ops_size() - loss.begin);
  for (size_t c = 0; c < chunks.size(); ++c) {
    writer.Write(static_cast<int>(c), chunks[c]);
  }
  for (const Op& op : behind) *table.add_ops() = op;
  return absl::OkStatus();
}

}  // namespace

std::vector<ChunkShape> ChunksOf(const ChunkShape& all, int64_t rows_max) {
  std::vector<ChunkShape> chunks;
  if (rows_max >= all.positions) {
    const int64_t count =
        RoundedUp(all.samples, rows_max / std::max<int64_t>(1, all.positions));
    for (const int64_t samples : EvenSizes(all.samples, count)) {
      chunks.push_back({samples, all.positions});
    }
    return chunks;
  }
  const int64_t count = RoundedUp(all.positions, rows_max);
  for (int64_t sample = 0; sample < all.samples; ++sample) {
    for (const int64_t positions : EvenSizes(all.positions, count)) {
      chunks.push_back({1, positions});
    }
  }
  return chunks;
}

absl::Status ChunkLoss(int64_t rows_max, UnitList& units) {
  if (rows_max == 0) return absl::OkStatus();
  for (UnitTable& table : units.tables) {
    RETURN_IF_ERROR(ChunkTable(rows_max, table));
  }
  return absl::OkStatus();
}

std::vector<int64_t> TriedLossChunks() { return {1024}; }

}  // namespace troupe
