// Softmax cross-entropy and its gradient in one pass over the logits, which are
// by far the largest activation of a small model and are therefore overwritten:
//
//   loss_sum += sum over rows of (logsumexp(logits) - logits[target])
//   logits    = (softmax(logits) - onehot(target)) * gradient_scale
//
// Rows whose target is -1 add nothing and get a gradient of zero. The mean over
// a global batch of N targets is loss_sum / N with gradient_scale 1 / N.
//
// Rows may belong to several sequences, each of which is then added up by
// itself as well: the sum of its rows' losses, and how many of them have a
// target.
//
// Logits are f32, bf16 or fp16. Either way the exponentials are f32, and each
// element of the gradient is rounded once: that of a target is the difference,
// not the difference of a rounded probability.
//
// Where the vocabulary is cut over ranks (Megatron-LM, 1909.08053, section 3),
// each has the logits of some columns of it, possibly none, and possibly more
// columns after them, which pad its tensor: they count for nothing, and their
// gradient is 0. CrossEntropyParts says of each row what the others must know;
// with the parts of all ranks (an all-gather) CrossEntropy then does the same
// as above, but for the gradient of its own columns only. All ranks find the
// same losses bit for bit, so one of them counts:
//
//   CrossEntropyParts(device, {.logits = logits, .targets = targets,
//                              .parts = mine, .first_column = 25129,
//                              .columns = 25128, .vocabulary = 50257});
//   CrossEntropy(device, {.logits = logits, .targets = targets,
//                         .gradient = true, .parts = all,
//                         .first_column = 25129, .columns = 25128,
//                         .vocabulary = 50257, .counts = false});
#ifndef TROUPE_OPS_CROSS_ENTROPY_H_
#define TROUPE_OPS_CROSS_ENTROPY_H_

#include <cstdint>

#include "ops/tensor.h"
#include "ops/token_rows.h"

namespace troupe {

class Device;

// Columns of logits from `columns` on are padding; -1: there is none. Without
// a vocabulary the columns are all of it.
struct CrossEntropyArgs {
  Tensor logits;          // X [rows, width], rows may be strided
  Tensor targets;         // i32 [rows] in any shape, each in [-1, vocabulary)
  Tensor loss_sum;        // f64 [1], accumulated; may be left out by !counts
  Tensor count;           // optional, f64 [1], accumulated: targets but -1
  Tensor losses;          // optional, f32 [rows]: the loss of each row
  // Optional, both or none: f64, an element for each sequence from the first
  // row's to the last row's, accumulated.
  Tensor sequence_losses;
  Tensor sequence_counts;
  TokenRows sequences;    // which sequence each row is of
  bool gradient = false;  // overwrite the logits; otherwise they stay
  float gradient_scale = 1.0f;
  Tensor parts;  // optional, f32 [ranks, rows, 3]: those of all ranks
  int64_t first_column = 0;  // in the vocabulary; only with parts
  int64_t columns = -1;
  int64_t vocabulary = 0;  // of all ranks
  bool counts = true;      // else all sums and losses are left alone
};

void CrossEntropy(Device& device, const CrossEntropyArgs& args);

// The parts of a row are: the largest of its logits here, -infinity where there
// are none; the sum of exp(logit - largest), 0 where there are none; the logit
// of the target, 0 where it is not here or -1. They depend on the columns
// alone, not on where the tensor begins or how wide it is.
struct CrossEntropyPartsArgs {
  Tensor logits;  // X [rows, width], rows may be strided
  Tensor targets;
  Tensor parts;  // f32 [rows, 3], written
  int64_t first_column = 0;
  int64_t columns = -1;
  int64_t vocabulary = 0;
};

void CrossEntropyParts(Device& device, const CrossEntropyPartsArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_CROSS_ENTROPY_H_
