#include "tests/clients/gantt/made_pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "proto/base/check.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

constexpr auto kForward = Instruction::FORWARD;
constexpr auto kInput = Instruction::BACKWARD_INPUT;
constexpr auto kWeight = Instruction::BACKWARD_WEIGHT;

// kind, stage, micro-batch, ahead
using Key = std::tuple<Instruction::Kind, int, int, int>;
Key KeyOf(const MadePass& pass) {
  return {pass.kind, pass.stage, pass.micro_batch, pass.ahead};
}

class Making {
 public:
  Making(const MadeOrder& order, const MadeTimes& times)
      : order_(order), times_(times), free_(order.size()) {
    *timeline_.mutable_lanes() = AllLanes();
    for (int r = 0; r < order.size(); ++r) {
      timeline_.add_ranks()->set_rank(r);
      for (const MadePass& pass : order[r]) {
        holders_[KeyOf(pass)] = r;
      }
    }
  }

  Timeline Make() {
    std::vector<size_t> next(order_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < order_.size(); ++r) {
        while (next[r] < order_[r].size() && Run(r, order_[r][next[r]])) {
          ++next[r];
          moved = true;
        }
      }
    }
    for (int r = 0; r < order_.size(); ++r) {
      CHECK(next[r] == order_[r].size()) << "rank " << r << " is stuck";
    }
    AddTransfers();
    AddEnd();
    return std::move(timeline_);
  }

 private:
  // What the pass reads from another stage.
  std::optional<MadePass> Before(const MadePass& pass) const {
    MadePass before = pass;
    if (pass.kind == kForward) --before.stage;
    if (pass.kind == kInput) ++before.stage;
    if (pass.kind == kWeight || holders_.count(KeyOf(before)) == 0) return {};
    return before;
  }

  bool Run(int rank, const MadePass& pass) {
    int64_t start = free_[rank];
    if (const auto before = Before(pass)) {
      const auto done = ended_.find(KeyOf(*before));
      if (done == ended_.end()) return false;
      const int from = holders_.at(KeyOf(*before));
      const int64_t arrives =
          done->second + (from == rank ? 0 : times_.transfer_ns);
      start = std::max(start, arrives);
      if (from != rank) {
        transfers_.push_back({from, rank, done->second, arrives, *before});
      }
    }
    const int units = times_.units_per_stage;
    const int64_t noise =
        times_.jitter_ns == 0 ? 0 : Noise() % times_.jitter_ns;
    const int64_t each = (times_.pass_ns + noise) / units;
    const bool both = times_.alternating && pass.kind != kForward;
    if (both && pass.kind == kWeight) return true;  // came with the input's
    int64_t now = start;
    for (int i = 0; i < units; ++i) {
      const int at = pass.kind == kForward ? i : units - 1 - i;
      const int unit = pass.stage * units + at;
      Add(rank, LaneNamed("COMPUTE"), pass, unit, now, now + each);
      now += each;
      if (!both) continue;
      MadePass weight = pass;
      weight.kind = kWeight;
      Add(rank, LaneNamed("COMPUTE"), weight, unit, now, now + each);
      now += each;
    }
    free_[rank] = now;
    ended_[KeyOf(pass)] = now;
    return true;
  }

  uint32_t Noise() { return noise_ = noise_ * 1664525u + 1013904223u; }

  Span& Add(int rank, int lane, const MadePass& pass, int unit, int64_t start,
            int64_t end) {
    Span& span = *timeline_.mutable_ranks(rank)->add_spans();
    span.set_kind(pass.kind);
    span.set_lane(lane);
    span.set_unit(unit);
    span.set_micro_batch(pass.micro_batch);
    span.set_ahead(pass.ahead);
    span.set_start_ns(start);
    span.set_end_ns(end);
    return span;
  }

  struct Transfer {
    int from, to;
    int64_t ready, arrives;
    MadePass pass;
  };

  // Each rank posts a transfer when the one before it in the lane is over.
  void AddTransfers() {
    std::stable_sort(transfers_.begin(), transfers_.end(),
                     [](const Transfer& a, const Transfer& b) {
                       return a.arrives < b.arrives;
                     });
    std::map<std::pair<int, int>, int64_t> lane_free;
    for (const Transfer& transfer : transfers_) {
      const bool forward = transfer.pass.kind == kForward;
      const int lane =
          forward ? LaneNamed("ACTIVATIONS") : LaneNamed("GRADIENTS");
      // Named after the last unit of the lower of the two stages.
      const int unit = forward ? transfer.pass.stage : transfer.pass.stage - 1;
      const int last = (unit + 1) * times_.units_per_stage - 1;
      MadePass pass = transfer.pass;
      pass.kind = Instruction::SEND;
      int64_t& sender = lane_free[{transfer.from, lane}];
      Add(transfer.from, lane, pass, last, std::max(sender, transfer.ready),
          transfer.arrives)
          .set_peer(transfer.to);
      sender = transfer.arrives;
      pass.kind = Instruction::RECV;
      int64_t& receiver = lane_free[{transfer.to, lane}];
      Add(transfer.to, lane, pass, last, receiver, transfer.arrives)
          .set_peer(transfer.from);
      receiver = transfer.arrives;
    }
  }

  void AddEnd() {
    const int64_t step = times_.pass_ns / 4;
    const int64_t all = *std::max_element(free_.begin(), free_.end()) + step;
    for (int r = 0; r < order_.size(); ++r) {
      RankTimeline& rank = *timeline_.mutable_ranks(r);
      Span& optimizer = *rank.add_spans();
      optimizer.set_kind(Instruction::STEP);
      optimizer.set_lane(LaneNamed("COMPUTE"));
      optimizer.set_unit(r * times_.units_per_stage);
      optimizer.set_start_ns(free_[r]);
      optimizer.set_end_ns(free_[r] + step);
      Span& scalars = *rank.add_spans();
      scalars.set_kind(Instruction::REDUCE_SCALARS);
      scalars.set_lane(LaneNamed("COLLECTIVE"));
      scalars.set_start_ns(free_[r] + step);
      scalars.set_end_ns(all + times_.transfer_ns);
    }
  }

  const MadeOrder& order_;
  const MadeTimes& times_;
  Timeline timeline_;
  std::map<Key, int> holders_;
  std::map<Key, int64_t> ended_;
  std::vector<int64_t> free_;
  std::vector<Transfer> transfers_;
  uint32_t noise_ = 1;
};

}  // namespace

MadeOrder OneForwardOneBackward(int ranks, int micro_batches) {
  MadeOrder order(ranks);
  for (int r = 0; r < ranks; ++r) {
    const int warm = std::min(micro_batches, ranks - 1 - r);
    for (int k = 0; k < micro_batches + warm; ++k) {
      if (k < micro_batches) order[r].push_back({kForward, r, k});
      if (k < warm) continue;
      order[r].push_back({kInput, r, k - warm});
      order[r].push_back({kWeight, r, k - warm});
    }
  }
  return order;
}

MadeOrder ZeroBubble(int ranks, int micro_batches) {
  MadeOrder order(ranks);
  for (int r = 0; r < ranks; ++r) {
    const int warm = std::min(micro_batches, ranks - 1 - r);
    for (int k = 0; k < micro_batches + warm + r; ++k) {
      if (k < micro_batches) order[r].push_back({kForward, r, k});
      const int input = k - warm;
      if (input >= 0 && input < micro_batches) {
        order[r].push_back({kInput, r, input});
      }
      if (input >= r) order[r].push_back({kWeight, r, input - r});
    }
  }
  return order;
}

MadeOrder Interleaved(int ranks, int micro_batches) {
  MadeOrder order(ranks);
  const int passes = 2 * micro_batches;
  const auto pass = [&](Instruction::Kind kind, int rank, int k) {
    const int first = (k / ranks) % 2;
    const int chunk = kind == kForward ? first : 1 - first;
    return MadePass{kind, chunk * ranks + rank,
                    k / (2 * ranks) * ranks + k % ranks};
  };
  for (int r = 0; r < ranks; ++r) {
    const int warm = std::min(passes, (ranks - r - 1) * 2 + ranks);
    for (int k = 0; k < passes + warm; ++k) {
      if (k < passes) order[r].push_back(pass(kForward, r, k));
      if (k < warm) continue;
      order[r].push_back(pass(kInput, r, k - warm));
      order[r].push_back(pass(kWeight, r, k - warm));
    }
  }
  return order;
}

MadeOrder Asynchronous(int ranks, int micro_batches) {
  MadeOrder order(ranks);
  for (int r = 0; r < ranks; ++r) {
    for (int k = 0; k < micro_batches; ++k) {
      const int stream = k + ranks - 1 - r;
      order[r].push_back(
          {kForward, r, stream % micro_batches, stream / micro_batches});
      order[r].push_back({kInput, r, k});
      order[r].push_back({kWeight, r, k});
    }
  }
  return order;
}

Timeline MakePipeline(const MadeOrder& order, const MadeTimes& times) {
  return Making(order, times).Make();
}

std::vector<Stage> StagesOf(int stages, int units_per_stage) {
  std::vector<Stage> result(stages);
  for (int i = 0; i < stages; ++i) {
    result[i].set_unit(i * units_per_stage);
    result[i].set_unit_count(units_per_stage);
  }
  return result;
}

}  // namespace troupe
