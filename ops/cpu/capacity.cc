#include "ops/capacity.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// By expert: places of the sequence that are taken before this rank's j-th
// choices find theirs.
void SetTaken(const CapacityArgs& args, int64_t sequence, int64_t j,
              std::vector<int64_t>& taken) {
  std::fill(taken.begin(), taken.end(), 0);
  const int64_t k = args.choices.columns();
  for (int64_t rank = 0; rank < args.counts.dim(0); ++rank) {
    const float* const of_rank =
        args.counts.data<float>() +
        (rank * args.counts.dim(1) + sequence * k) * args.experts;
    const int64_t choices = rank < args.rank ? j + 1 : j;
    for (int64_t c = 0; c < choices; ++c) {
      for (int64_t expert = 0; expert < args.experts; ++expert) {
        taken[expert] +=
            static_cast<int64_t>(of_rank[c * args.experts + expert]);
      }
    }
  }
}

// Of rows [first, end), which are of one sequence; how many choices it drops.
int64_t Place(const CapacityArgs& args, int64_t first, int64_t end) {
  const int64_t k = args.choices.columns();
  const int32_t* const choices = args.choices.data<int32_t>() + first * k;
  const float* const gates = args.gates.data<float>() + first * k;
  float* const kept = args.kept.data<float>() + first * k;
  std::vector<int64_t> taken(args.experts);
  int64_t dropped = 0;
  for (int64_t j = 0; j < k; ++j) {
    if (args.counts.defined()) SetTaken(args, args.rows.Of(first), j, taken);
    for (int64_t at = j; at < (end - first) * k; at += k) {
      const int32_t expert = choices[at];
      CHECK(expert >= 0 && expert < args.experts)
          << "choice " << expert << ", of " << args.experts << " experts";
      const bool fits = taken[expert]++ < args.places;
      kept[at] = fits ? gates[at] : 0.0f;
      dropped += !fits;
    }
  }
  return dropped;
}

}  // namespace

void Capacity(Device&, const CapacityArgs& args) {
  int64_t dropped = 0;
  const int64_t rows = args.choices.rows();
  for (int64_t row = 0; row < rows;) {
    const int64_t next =
        (args.rows.Of(row) + 1) * args.rows.tokens - args.rows.first;
    const int64_t end = std::min(next, rows);
    dropped += Place(args, row, end);
    row = end;
  }
  if (args.dropped.defined()) {
    *args.dropped.data<double>() += static_cast<double>(dropped);
  }
}

void CapacityBackward(Device&, const CapacityBackwardArgs& args) {
  const float* const kept = args.kept.data<float>();
  const float* const d_kept = args.d_kept.data<float>();
  float* const d_gates = args.d_gates.data<float>();
  for (int64_t i = 0; i < args.kept.elements(); ++i) {
    d_gates[i] = kept[i] == 0 ? 0.0f : d_kept[i];
  }
}

}  // namespace troupe::cpu
