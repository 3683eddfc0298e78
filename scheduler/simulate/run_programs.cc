#include "scheduler/simulate/run_programs.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/find_program.h"
#include "proto/plan/lanes.h"
#include "proto/plan/meeting.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ready_queue.h"
#include "proto/plan/roles.h"
#include "scheduler/simulate/processor.h"

namespace troupe {
namespace {

constexpr int kDirections = 2;  // of an adapter: out and in

// One rank on its way through its programs.
struct RankState {
  int rank = 0;
  const Program* program = nullptr;  // that it runs now
  const Program* repeated = nullptr;
  std::unique_ptr<ReadyQueue> queue;
  bool is_first = false;  // the program is the one before all runs
  int runs_begun = 0;
  // Of the runs that not all ranks have finished, and the last that they have.
  struct Run {
    int64_t begin = 0;
    std::vector<InstructionTimes> times;
  };
  std::deque<Run> runs;
  // Bytes that instructions which meet are moving, of which the first is one of
  // this rank: by that.
  struct Move {
    std::vector<RankInstruction> together;
    int links = 0;  // and adapters, that have yet to carry all
    int64_t other_ns = 0;
  };
  std::map<int, Move> moves;

  void Load(const Program& next, const Lanes& lanes) {
    const bool again = program == &next;
    program = &next;
    if (!again) queue = std::make_unique<ReadyQueue>(next, lanes);
  }
};

class Simulation {
 public:
  Simulation(const Plan& plan, const RankClasses& classes,
             const InstructionEffort& effort, const RunOptions& options)
      : lanes_(plan.lanes()),
        effort_(effort),
        options_(options),
        meeting_(classes),
        by_rank_(MeshSize(plan.mesh()), -1) {
    for (const Seats::Crowded& processor : options.seats.processors) {
      processors_.push_back(
          {.processor = Processor(processor.cores), .changed = false});
    }
    first_adapter_ = static_cast<int>(processors_.size());
    for (int i = 0; i < kDirections * options.adapters.adapters; ++i) {
      processors_.push_back({.processor = Processor(1), .changed = false});
    }
    first_link_ = static_cast<int>(processors_.size());
    for (const int rank : classes.first_ranks()) {
      const Role& role = RoleOf(plan, rank);
      RankState state;
      state.rank = rank;
      state.repeated = FindProgram(role, options.kind);
      if (state.repeated == nullptr) continue;
      if (const Program* first = FindProgram(role, options.first)) {
        state.Load(*first, lanes_);
        state.is_first = true;
      }
      by_rank_[state.rank] = static_cast<int>(states_.size());
      states_.push_back(std::move(state));
      for (int link = 0; link < kLinks; ++link) {
        processors_.push_back({.processor = Processor(1), .changed = false});
      }
    }
  }

  ProgramsRun Run() {
    for (RankState& state : states_) {
      if (state.is_first) {
        StartAll(state, state.queue->Start());
      } else {
        NextRun(state);
      }
    }
    while (!enough_ && Advance()) {
    }
    // Ranks that sum later than others wait in their last run for sums that
    // those would make in a next one.
    if (!enough_ && options_.runs_max == 1) {
      for (const RankState& state : states_) {
        CHECK(state.queue->done()) << "rank " << state.rank << " never ends";
      }
    }
    return Result();
  }

 private:
  // Something ends: an instruction, or the next one on a processor, which is
  // forgotten where something has started there since (its version is old).
  struct Event {
    int64_t time = 0;
    int processor = Seats::kOwn;
    int64_t version = 0;
    RankInstruction at;
    bool operator>(const Event& other) const {
      return std::tie(time, processor, at.rank, at.instruction) >
             std::tie(other.time, other.processor, other.at.rank,
                      other.at.instruction);
    }
  };
  struct SharedProcessor {
    Processor processor;
    int64_t version = 0;
    bool changed = false;
  };

  RankState& StateOf(int rank) { return states_[by_rank_[rank]]; }

  // Lets the next event happen; false where there is none.
  bool Advance() {
    if (events_.empty() || events_.top().time > now_) AnnounceProcessors();
    if (events_.empty()) return false;
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    if (event.processor == Seats::kOwn) {
      End(event.at);
      return true;
    }
    SharedProcessor& shared = processors_[event.processor];
    if (shared.version != event.version) return true;
    Change(event.processor);
    for (const RankInstruction& at : shared.processor.TakeEnded(now_)) {
      if (event.processor >= first_adapter_) {
        Carried(at);
        continue;
      }
      const RankState& state = StateOf(at.rank);
      const Instruction& done = state.program->instructions(at.instruction);
      events_.push({.time = now_ + effort_(at.rank, done).other_ns, .at = at});
    }
    return true;
  }

  void Change(int processor) {
    SharedProcessor& shared = processors_[processor];
    ++shared.version;
    if (!shared.changed) changed_.push_back(processor);
    shared.changed = true;
  }

  // Says once for all that changed at one time when their next ends come.
  void AnnounceProcessors() {
    for (const int index : changed_) {
      SharedProcessor& shared = processors_[index];
      shared.changed = false;
      if (shared.processor.idle()) continue;
      events_.push({.time = shared.processor.NextEnd(),
                    .processor = index,
                    .version = shared.version,
                    .at = {}});
    }
    changed_.clear();
  }

  void StartAll(RankState& state, const std::vector<int>& ready) {
    for (const int i : ready) Start(state, i);
    if (state.queue->done()) FinishProgram(state);
  }

  // From here on the instruction holds its lane; it runs when all have come.
  void Start(RankState& state, int index) {
    InstructionTimes* times = TimesOf(state, index);
    if (times != nullptr) times->start = now_;
    const Instruction& instruction = state.program->instructions(index);
    if (SumsNoStep(instruction, state.runs_begun)) {
      if (times != nullptr) times->runs = now_;
      events_.push({.time = now_, .at = {state.rank, index}});
      return;
    }
    const std::vector<RankInstruction> together = meeting_.Arrive(
        {.rank = state.rank, .instruction = index}, instruction);
    Effort most;
    efforts_.clear();
    for (const RankInstruction& member : together) {
      RankState& of = StateOf(member.rank);
      const Effort& effort = efforts_.emplace_back(
          effort_(member.rank, of.program->instructions(member.instruction)));
      most.compute_ns = std::max(most.compute_ns, effort.compute_ns);
      most.other_ns = std::max(most.other_ns, effort.other_ns);
      most.wire_ns = std::max(most.wire_ns, effort.wire_ns);
      times = TimesOf(of, member.instruction);
      if (times != nullptr) times->runs = now_;
    }
    if (most.wire_ns > 0) {
      Transmit(together, most);
      return;
    }
    for (const RankInstruction& member : together) Work(member, most);
  }

  // Of efforts_, in which `most` is the most of each; all that meet wait for
  // the last of their links and adapters.
  void Transmit(const std::vector<RankInstruction>& together,
                const Effort& most) {
    const RankInstruction& first = together.front();
    RankState::Move& move = StateOf(first.rank).moves[first.instruction];
    move = {.together = together, .other_ns = most.compute_ns + most.other_ns};
    const auto occupy = [&](int processor, double ns) {
      if (ns == 0) return;
      const double share = ns / static_cast<double>(most.wire_ns);
      processors_[processor].processor.Start(
          now_, {.at = first, .cores = share, .ns = most.wire_ns});
      Change(processor);
      ++move.links;
    };
    for (size_t i = 0; i < together.size(); ++i) {
      const Effort& effort = efforts_[i];
      const int links = first_link_ + by_rank_[together[i].rank] * kLinks;
      for (int link = 0; link < kLinks; ++link) {
        occupy(links + link, effort.links_ns[link]);
      }
      if (options_.adapters.of_rank.empty()) continue;
      for (const AdapterUse& use :
           options_.adapters.of_rank[together[i].rank]) {
        const int adapter = first_adapter_ + kDirections * use.adapter;
        occupy(adapter, effort.out_bytes * use.ns_per_byte);
        occupy(adapter + 1, effort.in_bytes * use.ns_per_byte);
      }
    }
    if (move.links > 0) return;
    // Too few bytes to be on any: a byte of a sum has no share for each rank.
    move.links = 1;
    move.other_ns += most.wire_ns;
    Carried(first);
  }

  // One more link or adapter has carried all that these put on it.
  void Carried(const RankInstruction& first) {
    auto& moves = StateOf(first.rank).moves;
    const auto found = moves.find(first.instruction);
    if (--found->second.links > 0) return;
    for (const RankInstruction& member : found->second.together) {
      events_.push({.time = now_ + found->second.other_ns, .at = member});
    }
    moves.erase(found);
  }

  void Work(const RankInstruction& at, const Effort& effort) {
    const auto& seats = options_.seats.ranks;
    const Seats::Seat seat = seats.empty() ? Seats::Seat() : seats[at.rank];
    if (seat.processor == Seats::kOwn || effort.compute_ns == 0) {
      events_.push(
          {.time = now_ + effort.compute_ns + effort.other_ns, .at = at});
      return;
    }
    processors_[seat.processor].processor.Start(
        now_, {.at = at, .cores = seat.cores, .ns = effort.compute_ns});
    Change(seat.processor);
  }

  void End(const RankInstruction& at) {
    RankState& state = StateOf(at.rank);
    if (InstructionTimes* times = TimesOf(state, at.instruction)) {
      times->end = now_;
    }
    StartAll(state, state.queue->Finish(at.instruction));
  }

  // Of an instruction of the run that the rank is in; null before the runs.
  InstructionTimes* TimesOf(RankState& state, int instruction) {
    return state.is_first ? nullptr : &state.runs.back().times[instruction];
  }

  void FinishProgram(RankState& state) {
    if (!state.is_first) CountFinished(state.runs_begun - 1);
    state.is_first = false;
    NextRun(state);
  }

  void NextRun(RankState& state) {
    if (enough_ || state.runs_begun == options_.runs_max) return;
    state.Load(*state.repeated, lanes_);
    ++state.runs_begun;
    state.runs.push_back({.begin = now_, .times = {}});
    state.runs.back().times.resize(state.program->instructions_size());
    StartAll(state, state.queue->Start());
  }

  void CountFinished(int run) {
    finished_.resize(std::max<size_t>(finished_.size(), run + 1));
    if (++finished_[run] < static_cast<int>(states_.size())) return;
    if (run > 0) {
      for (RankState& state : states_) state.runs.pop_front();
    }
    ends_.push_back(now_);
    if (options_.is_enough) enough_ = options_.is_enough(ends_);
  }

  ProgramsRun Result() {
    ProgramsRun result;
    result.ends = std::move(ends_);
    int64_t begin = std::numeric_limits<int64_t>::max();
    for (const RankState& state : states_) {
      begin = std::min(begin, state.runs.front().begin);
    }
    for (RankState& state : states_) {
      RankTimes& rank = result.ranks.emplace_back();
      rank.rank = state.rank;
      rank.instructions = std::move(state.runs.front().times);
      for (InstructionTimes& times : rank.instructions) {
        times.start -= begin;
        times.runs -= begin;
        times.end -= begin;
      }
    }
    return result;
  }

  const Lanes& lanes_;
  const InstructionEffort& effort_;
  const RunOptions& options_;
  Meeting meeting_;
  std::vector<RankState> states_;
  std::vector<int> by_rank_;  // index into states_
  // Of seats; then what is shared alike: from first_adapter_ on each adapter,
  // out and in, from first_link_ on the links of each of states_.
  std::vector<SharedProcessor> processors_;
  int first_adapter_ = 0;
  int first_link_ = 0;
  std::vector<Effort> efforts_;  // of those that begin to run
  std::vector<int> changed_;     // processors, since their next end was said
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
  int64_t now_ = 0;
  std::vector<int> finished_;  // by run: how many ranks
  std::vector<int64_t> ends_;
  bool enough_ = false;
};

}  // namespace

ProgramsRun RunPrograms(const Plan& plan, const RankClasses& classes,
                        const InstructionEffort& effort,
                        const RunOptions& options) {
  CHECK_GE(options.runs_max, 1);
  return Simulation(plan, classes, effort, options).Run();
}

RankClasses EachRank(const Plan& plan) {
  RankTraits traits;
  for (int r = 0; r < MeshSize(plan.mesh()); ++r) traits.ranks.push_back(r);
  return RankClasses(plan, traits);
}

}  // namespace troupe
