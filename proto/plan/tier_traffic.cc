#include "proto/plan/tier_traffic.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "proto/plan/buffer_kind.h"
#include "proto/plan/operand.h"

namespace troupe {
namespace {

struct Interval {
  int64_t begin = 0;  // nanoseconds
  int64_t end = 0;
};

// As few of them, in order.
std::vector<Interval> Merged(std::vector<Interval> intervals) {
  std::sort(
      intervals.begin(), intervals.end(),
      [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> merged;
  for (const Interval& next : intervals) {
    if (merged.empty() || merged.back().end < next.begin) {
      merged.push_back(next);
    } else {
      merged.back().end = std::max(merged.back().end, next.end);
    }
  }
  return merged;
}

// Nanoseconds of what is in `of` and not in `but`; both merged.
int64_t Without(const std::vector<Interval>& of,
                const std::vector<Interval>& but) {
  int64_t sum = 0;
  size_t first = 0;
  for (const Interval& interval : of) {
    sum += interval.end - interval.begin;
    while (first < but.size() && but[first].end <= interval.begin) ++first;
    for (size_t i = first; i < but.size() && but[i].begin < interval.end; ++i) {
      sum -= std::min(interval.end, but[i].end) -
             std::max(interval.begin, but[i].begin);
    }
  }
  return sum;
}

// The tiers that a move goes from and to.
struct Way {
  Tier from = DEVICE;
  Tier to = DEVICE;
  int64_t bytes = 0;

  Tier lower() const { return std::max(from, to); }
};
Way WayOf(const Program& program, const Instruction& move) {
  const Buffer* from = nullptr;
  const Buffer* to = nullptr;
  for (const Instruction::Operand& operand : move.operands()) {
    const Buffer& buffer = program.buffers(operand.buffer());
    (operand.part() == Instruction::FROM ? from : to) = &buffer;
  }
  if (from == nullptr || to == nullptr) return {};
  return {TierOf(*from), TierOf(*to), BytesMoved(*from, *to)};
}

// The instructions that wait for moves, in one run of a program.
class Waits {
 public:
  Waits(const Program& program, const Lanes& lanes,
        const RankTimeline& timeline)
      : program_(program), times_(program.instructions_size()) {
    for (const Span& span : timeline.spans()) {
      times_.at(span.instruction()) = {span.start_ns(), span.end_ns()};
    }
    std::map<int, int> last;  // by lane
    for (int i = 0; i < program.instructions_size(); ++i) {
      const Instruction& instruction = program.instructions(i);
      const auto [at, first] = last.emplace(instruction.lane(), i);
      before_.push_back(first ? -1 : at->second);
      at->second = i;
      const Lane::Kind kind = KindOfLane(lanes, instruction.lane());
      if (IsMove(instruction.kind())) continue;
      if (kind != Lane::COMPUTE && kind != Lane::HOST) continue;
      works_.push_back(times_[i]);
      AddWait(InFrontOf(i));
    }
    works_ = Merged(std::move(works_));
    std::vector<int> all;
    for (int i = 0; i < program.instructions_size(); ++i) all.push_back(i);
    AddWait(all);
  }

  const Interval& TimeOf(int instruction) const { return times_[instruction]; }

  // Of the tier, that nothing was computed meanwhile.
  int64_t Nanos(Tier tier) const {
    const auto found = waits_.find(tier);
    if (found == waits_.end()) return 0;
    return Without(Merged(found->second), works_);
  }

 private:
  // What an instruction waits for.
  std::vector<int> InFrontOf(int instruction) const {
    const auto& after = program_.instructions(instruction).after();
    std::vector<int> all(after.begin(), after.end());
    if (before_[instruction] >= 0) all.push_back(before_[instruction]);
    return all;
  }

  bool IsMoveAt(int instruction) const {
    return IsMove(program_.instructions(instruction).kind());
  }

  // Of those that something waits for, the move that ends last; -1: none.
  int LastMove(const std::vector<int>& in_front) const {
    int last = -1;
    for (const int i : in_front) {
      if (!IsMoveAt(i)) continue;
      if (last < 0 || times_[i].end > times_[last].end) last = i;
    }
    return last;
  }

  void AddWait(const std::vector<int>& in_front) {
    int64_t free_ns = 0;  // were there no moves
    for (const int i : in_front) {
      if (!IsMoveAt(i)) free_ns = std::max(free_ns, times_[i].end);
    }
    int move = LastMove(in_front);
    if (move < 0) return;
    int64_t until_ns = times_[move].end;
    while (move >= 0 && until_ns > free_ns) {
      const int64_t begin_ns =
          std::clamp(times_[move].begin, free_ns, until_ns);
      waits_[WayOf(program_, program_.instructions(move)).lower()].push_back(
          {begin_ns, until_ns});
      until_ns = begin_ns;
      move = LastMove(InFrontOf(move));
      if (move >= 0) until_ns = std::min(until_ns, times_[move].end);
    }
  }

  const Program& program_;
  std::vector<Interval> times_;  // by instruction
  std::vector<int> before_;      // the one before it in its lane, or -1
  std::vector<Interval> works_;  // when a lane computes
  std::map<Tier, std::vector<Interval>> waits_;
};

}  // namespace

bool MovesBetweenTiers(const Program& program) {
  return std::any_of(program.instructions().begin(),
                     program.instructions().end(),
                     [](const Instruction& i) { return IsMove(i.kind()); });
}

std::vector<TierTraffic> TrafficOf(const Program& program, const Lanes& lanes,
                                   const RankTimeline& timeline) {
  const Waits waits(program, lanes, timeline);
  std::map<Tier, TierTraffic> by_tier;
  for (int i = 0; i < program.instructions_size(); ++i) {
    if (!IsMove(program.instructions(i).kind())) continue;
    const Way way = WayOf(program, program.instructions(i));
    TierTraffic& traffic = by_tier[way.lower()];
    const bool up = way.to < way.from;
    traffic.set_bytes_in(traffic.bytes_in() + (up ? way.bytes : 0));
    traffic.set_bytes_out(traffic.bytes_out() + (up ? 0 : way.bytes));
    const Interval& time = waits.TimeOf(i);
    traffic.set_seconds(traffic.seconds() + (time.end - time.begin) * 1e-9);
  }
  std::vector<TierTraffic> all;
  for (auto& [tier, traffic] : by_tier) {
    traffic.set_tier(tier);
    traffic.set_waited_seconds(waits.Nanos(tier) * 1e-9);
    all.push_back(std::move(traffic));
  }
  return all;
}

void AddTraffic(const TierTraffic& of_rank,
                google::protobuf::RepeatedPtrField<TierTraffic>& sum) {
  auto at = std::find_if(sum.begin(), sum.end(), [&](const TierTraffic& t) {
    return t.tier() == of_rank.tier();
  });
  if (at == sum.end()) {
    *sum.Add() = of_rank;
    return;
  }
  at->set_bytes_in(at->bytes_in() + of_rank.bytes_in());
  at->set_bytes_out(at->bytes_out() + of_rank.bytes_out());
  at->set_seconds(std::max(at->seconds(), of_rank.seconds()));
  at->set_waited_seconds(
      std::max(at->waited_seconds(), of_rank.waited_seconds()));
}

google::protobuf::RepeatedPtrField<TierTraffic> PredictedTraffic(
    const Prediction& prediction) {
  google::protobuf::RepeatedPtrField<TierTraffic> sum;
  for (const RankPrediction& rank : prediction.ranks()) {
    for (const TierTraffic& of_rank : rank.tiers()) AddTraffic(of_rank, sum);
  }
  return sum;
}

}  // namespace troupe
