#include "tests/scheduler/pipelines/closed_forms.h"

#include <algorithm>
#include <iterator>

#include "proto/base/check.h"

namespace troupe {
namespace {

using Bubble = std::optional<int>;

// The one time that all passes take, if they do.
Bubble EqualTime(const PassTimes& t) {
  if (t.forward != t.backward_input || t.forward != t.backward_weight) {
    return std::nullopt;
  }
  return t.forward;
}

// `passes` passes that all take the same time.
Bubble Passes(int passes, const PassTimes& times) {
  const Bubble time = EqualTime(times);
  return time ? Bubble(passes * *time) : std::nullopt;
}

// Inter-layer model parallelism: M times through all stages.
Bubble NaiveBubble(const PipelineShape& s, const PassTimes& t) {
  return (s.ranks - 1) * s.micro_batches * t.all();
}
int NaivePeak(const PipelineShape&, int) { return 1; }

// 1811.06965, section 2.3; 2006.09503, section 3.2; 2104.04473, section 2.2.2
// (whose V-th part is in the times of a stage).
Bubble FillAndDrain(const PipelineShape& s, const PassTimes& t) {
  return (s.ranks - 1) * t.all();
}
int GpipePeak(const PipelineShape& s, int) { return s.micro_batches; }
int OneForwardOneBackwardPeak(const PipelineShape& s, int rank) {
  return std::min(s.ranks - rank, s.micro_batches);
}
int InterleavedPeak(const PipelineShape& s, int rank) {
  const int warm_up =
      (s.virtual_stages - 1) * s.ranks + 2 * (s.ranks - 1 - rank);
  return std::min(warm_up + 1, s.micro_batches * s.virtual_stages);
}

// 2107.06925, table 2 for backward passes as long as forward passes; section
// 3.1 (C_b backward passes on the critical path) for longer ones. What passes
// of the same length give beyond whole units is our own count.
Bubble ChimeraBubble(const PipelineShape& s, const PassTimes& t) {
  const int before = (s.micro_batches - 1) / s.ranks;  // units before the last
  const int last = s.micro_batches - before * s.ranks;
  const int longer = t.backward() - t.forward;
  if (longer == 0) return 2 * (s.ranks - 1 - last / 2) * t.forward;
  if (longer > 0 && last == s.ranks) {
    return (s.ranks - 2) * (t.backward() + before * longer);
  }
  const int first = 3 * s.ranks - 4 - last + 2 * (last % 2);
  const int overlap = before > 0 && last < s.ranks - 1 ? 1 : 0;
  return Passes(first + before * (s.ranks - 2) - overlap, t);
}
int ChimeraPeak(const PipelineShape& s, int rank) {
  const int unit = std::min(s.micro_batches, s.ranks);
  const int down = (unit + 1) / 2;
  return std::min(s.ranks - rank, down) + std::min(rank + 1, unit - down);
}

// 2401.10241, table 2. Fewer micro-batches than the paper has: our own count.
Bubble ZeroBubble(const PipelineShape& s, const PassTimes& t, int depth) {
  if (s.micro_batches > depth * (s.ranks - 1)) {
    if (t.backward_weight > std::min(t.forward, t.backward_input)) {
      return std::nullopt;
    }
    return (s.ranks - 1) *
           (t.forward + t.backward_input - depth * t.backward_weight);
  }
  return Passes(
      std::max((2 - depth) * (s.ranks - 1), 2 * s.ranks - 1 - s.micro_batches),
      t);
}
Bubble ZbH1Bubble(const PipelineShape& s, const PassTimes& t) {
  return ZeroBubble(s, t, 1);
}
Bubble ZbH2Bubble(const PipelineShape& s, const PassTimes& t) {
  return ZeroBubble(s, t, 2);
}
int ZbH1Peak(const PipelineShape& s, int) {
  return std::min(s.ranks, s.micro_batches);
}
int ZbH2Peak(const PipelineShape& s, int) {
  return std::min(2 * s.ranks - 1, s.micro_batches);
}

// 2401.10241, section 6: none, and the memory of 1F1B. Fewer micro-batches than
// 2 P - 1: our own count.
Bubble ZbVBubble(const PipelineShape& s, const PassTimes& t) {
  return Passes(s.micro_batches < s.ranks
                    ? 4 * (s.ranks - 1) - 3 * (s.micro_batches - 1)
                    : std::max(0, 2 * s.ranks - 1 - s.micro_batches),
                t);
}
int ZbVPeak(const PipelineShape& s, int rank) {
  const int all = 2 * std::min(s.ranks, s.micro_batches);
  return std::min(all, s.micro_batches + rank + 1);
}

// 1806.03377, section 3.3; 2006.09503, section 3.1.
Bubble NoBubble(const PipelineShape&, const PassTimes&) { return 0; }
int UndrainedPeak(const PipelineShape& s, int rank) { return s.ranks - rank; }

constexpr ClosedForm kClosedForms[] = {
    {"naive", NaiveBubble, NaivePeak},
    {"gpipe", FillAndDrain, GpipePeak},
    {"1f1b", FillAndDrain, OneForwardOneBackwardPeak},
    {"interleaved_1f1b", FillAndDrain, InterleavedPeak},
    {"chimera", ChimeraBubble, ChimeraPeak},
    {"zb_h1", ZbH1Bubble, ZbH1Peak},
    {"zb_h2", ZbH2Bubble, ZbH2Peak, /*of_a_rank=*/true},
    {"zb_v", ZbVBubble, ZbVPeak, /*of_a_rank=*/true},
    {"pipedream", NoBubble, UndrainedPeak, /*of_a_rank=*/true},
    {"pipedream_2bw", NoBubble, UndrainedPeak, /*of_a_rank=*/true},
};

}  // namespace

const ClosedForm& FindClosedForm(absl::string_view schedule) {
  const auto* const found = std::find_if(
      std::begin(kClosedForms), std::end(kClosedForms),
      [&](const ClosedForm& form) { return form.schedule == schedule; });
  CHECK(found != std::end(kClosedForms))
      << "no closed form for " << schedule << ": add a row";
  return *found;
}

}  // namespace troupe
