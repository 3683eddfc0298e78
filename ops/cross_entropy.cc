#include "ops/cross_entropy.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

// What both functions take; afterwards columns and vocabulary are what they
// stand for.
template <typename Args>
void CheckLogits(Args& args) {
  CHECK_ACTIVATION(args.logits);
  CHECK_DTYPE(args.targets, DType::kI32);
  CHECK_GT(args.logits.columns(), 0);
  CHECK(args.targets.dense() && args.targets.elements() == args.logits.rows())
      << args.targets.ShapeString() << " for " << args.logits.ShapeString();
  if (args.columns == -1) args.columns = args.logits.columns();
  if (args.vocabulary == 0) args.vocabulary = args.columns;
  CHECK(args.columns >= 0 && args.columns <= args.logits.columns() &&
        args.first_column >= 0 && args.vocabulary > 0 &&
        args.first_column + args.columns <= args.vocabulary)
      << args.columns << " columns from " << args.first_column << " in "
      << args.logits.ShapeString() << ", vocabulary of " << args.vocabulary;
}

}  // namespace

void CrossEntropy(Device& device, const CrossEntropyArgs& args) {
  CrossEntropyArgs whole = args;
  CheckLogits(whole);
  const int64_t rows = args.logits.rows();
  if (args.counts) {
    CHECK_ELEMENTS(args.loss_sum, DType::kF64, 1);
  }
  if (args.count.defined()) {
    CHECK_ELEMENTS(args.count, DType::kF64, 1);
  }
  if (args.losses.defined()) {
    CHECK_F32_ELEMENTS(args.losses, rows);
  }
  CHECK_EQ(args.sequence_losses.defined(), args.sequence_counts.defined());
  if (args.sequence_losses.defined()) {
    const int64_t sequences =
        args.sequences.Of(rows - 1) - args.sequences.Of(0) + 1;
    CHECK_ELEMENTS(args.sequence_losses, DType::kF64, sequences);
    CHECK_ELEMENTS(args.sequence_counts, DType::kF64, sequences);
  }
  if (args.parts.defined()) {
    CHECK_DENSE_F32(args.parts);
    CHECK(args.parts.rank() == 3 && args.parts.dim(0) > 0 &&
          args.parts.dim(1) == rows && args.parts.dim(2) == 3)
        << args.parts.ShapeString() << " for " << args.logits.ShapeString();
  } else {
    CHECK_EQ(whole.columns, whole.vocabulary) << "without the others' parts";
  }
  device.kernels().cross_entropy(device, whole);
}

void CrossEntropyParts(Device& device, const CrossEntropyPartsArgs& args) {
  CrossEntropyPartsArgs whole = args;
  CheckLogits(whole);
  CHECK_F32_ELEMENTS(args.parts, args.logits.rows() * 3);
  device.kernels().cross_entropy_parts(device, whole);
}

}  // namespace troupe
