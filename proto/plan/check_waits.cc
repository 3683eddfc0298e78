#include "proto/plan/check_waits.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/lanes.h"
#include "proto/plan/meeting.h"
#include "proto/plan/program_text.h"
#include "proto/plan/rank_classes.h"
#include "proto/plan/ready_queue.h"
#include "proto/plan/roles.h"

namespace troupe {
namespace {

// The collectives of one rank in one group on one lane, as text, in order.
using Place = std::pair<int, int>;
std::map<Place, std::vector<std::string>> Collectives(const Program* program) {
  std::map<Place, std::vector<std::string>> entered;
  if (program == nullptr) return entered;
  for (const Instruction& instruction : program->instructions()) {
    if (!IsCollective(instruction.kind())) continue;
    // In which of its programs a rank sums a step's scalars is its own affair.
    Instruction entering = instruction;
    if (entering.kind() == Instruction::REDUCE_SCALARS) entering.clear_ahead();
    entered[{instruction.group(), instruction.lane()}].push_back(
        InstructionText(entering));
  }
  return entered;
}

// Where a rank enters collectives, all members of their group enter the same.
absl::Status CheckSameOrder(const Plan& plan, const RankClasses& classes,
                            Program::Kind kind) {
  std::map<int, std::map<Place, std::vector<std::string>>> entered;
  for (const int rank : classes.first_ranks()) {
    entered[rank] = Collectives(FindProgram(RoleOf(plan, rank), kind));
  }
  for (const int first : classes.first_ranks()) {
    for (const auto& [place, mine] : entered[first]) {
      for (const int other : classes.Members(first, place.first)) {
        if (other == first) continue;
        const auto& theirs = entered[other][place];
        if (mine == theirs) continue;
        const size_t i = std::mismatch(mine.begin(), mine.end(), theirs.begin(),
                                       theirs.end())
                             .first -
                         mine.begin();
        const auto text = [i](const std::vector<std::string>& texts) {
          return i < texts.size() ? texts[i] : "nothing";
        };
        // One that enters something there is named first.
        const bool first_enters = i < mine.size();
        const int here = first_enters ? first : other;
        const int there = first_enters ? other : first;
        return ProgramFault(
            {.rank = here, .kind = kind},
            absl::StrCat("collective ", i, " of group ",
                         plan.groups(place.first).name(), " is ",
                         text(entered[here][place]), ", but ",
                         text(entered[there][place]), " on rank ", there));
      }
    }
  }
  return absl::OkStatus();
}

// What goes from one rank to another in one group on one lane.
struct Channel {
  int group = 0;
  int lane = 0;
  int from = 0;
  int to = 0;
  auto operator<=>(const Channel&) const = default;
};
struct Transfers {
  std::vector<std::string> sent;
  std::vector<std::string> received;
};

std::string Moved(const Instruction& instruction) {
  std::string text = absl::StrCat("u", instruction.unit());
  if (instruction.output() > 0) {
    absl::StrAppend(&text, " o", instruction.output());
  }
  absl::StrAppend(&text, " m", instruction.micro_batch());
  if (instruction.ahead() != 0) {
    absl::StrAppend(&text, " +", instruction.ahead());
  }
  if (instruction.gradient()) absl::StrAppend(&text, " grad");
  return text;
}

absl::Status CheckTransfers(const Plan& plan, const RankClasses& classes,
                            Program::Kind kind) {
  std::map<Channel, Transfers> channels;
  for (const int rank : classes.first_ranks()) {
    const Program* const program = FindProgram(RoleOf(plan, rank), kind);
    if (program == nullptr) continue;
    for (const Instruction& instruction : program->instructions()) {
      if (!IsTransfer(instruction.kind())) continue;
      const bool sends = instruction.kind() == Instruction::SEND;
      const int peer = classes.PeerOf(rank, instruction);
      Transfers& transfers = channels[{.group = instruction.group(),
                                       .lane = instruction.lane(),
                                       .from = sends ? rank : peer,
                                       .to = sends ? peer : rank}];
      (sends ? transfers.sent : transfers.received)
          .push_back(Moved(instruction));
    }
  }
  for (const auto& [channel, transfers] : channels) {
    const auto& [sent, received] = transfers;
    if (sent == received) continue;
    const size_t i = std::mismatch(sent.begin(), sent.end(), received.begin(),
                                   received.end())
                         .first -
                     sent.begin();
    const auto text = [i](const std::vector<std::string>& moved) {
      return i < moved.size() ? moved[i] : "nothing";
    };
    return ProgramFault(
        {.rank = channel.from, .kind = kind},
        absl::StrCat("transfer ", i, " to rank ", channel.to, " (",
                     NameOfLane(plan.lanes(), channel.lane), " lane) is SEND ",
                     text(sent), ", but rank ", channel.to, " has RECV ",
                     text(received)));
  }
  return absl::OkStatus();
}

// Ranks join the groups in which they meet others: all members of a group do,
// or none.
absl::Status CheckJoined(const Plan& plan) {
  std::vector<std::set<int>> meets;  // by role: groups
  for (const Role& role : plan.roles()) {
    const std::vector<int> groups = MeetingGroups(role);
    meets.emplace_back(groups.begin(), groups.end());
  }
  for (int g = 0; g < plan.groups_size(); ++g) {
    const Group& group = plan.groups(g);
    for (int r = 0; r < plan.roles_size(); ++r) {
      if (meets[r].count(g) > 0 || !AreIn(plan.mesh(), plan.roles(r), group)) {
        continue;
      }
      const int absent = FirstRankOf(plan.mesh(), plan.roles(r));
      const Box members = BoxOf(plan.mesh(), group, absent);
      for (int other = 0; other < plan.roles_size(); ++other) {
        if (meets[other].count(g) == 0) continue;
        const int waits = FirstRankIn(plan.mesh(), plan.roles(other), members);
        if (waits < 0) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            "rank ", waits, " waits for all of group ", group.name(),
            " to join it, and rank ", absent, " does nothing in it"));
      }
    }
  }
  return absl::OkStatus();
}

// What each rank runs, one program after the other.
using Sequence = std::vector<const Program*>;

// Of steps that overlap, ranks may be in different ones: as many as make the
// furthest behind and the furthest ahead meet, with what comes before and
// after.
Sequence SequenceOf(const Plan& plan, const Role& role, Program::Kind kind) {
  const Program* const program = FindProgram(role, kind);
  if (program == nullptr) return {};
  const int lag = plan.derived().report_lag();
  if (kind != Program::TRAIN || lag == 0) return {program};
  Sequence sequence;
  const Program* const fill = FindProgram(role, Program::FILL);
  if (fill != nullptr) sequence.push_back(fill);
  for (int step = 0; step < lag + 2; ++step) sequence.push_back(program);
  const Program* const report = FindProgram(role, Program::REPORT);
  if (report == nullptr) return sequence;
  for (const Instruction& instruction : report->instructions()) {
    for (int late = instruction.ahead(); late < 0; ++late) {
      sequence.push_back(report);
    }
  }
  return sequence;
}

// All ranks together, one of each class, without time.
class Run {
 public:
  Run(const Plan& plan, const RankClasses& classes, Program::Kind kind)
      : lanes_(plan.lanes()), meeting_(classes) {
    for (const int rank : classes.first_ranks()) {
      Sequence sequence = SequenceOf(plan, RoleOf(plan, rank), kind);
      if (sequence.empty()) continue;
      RankRun& run = ranks_[rank];
      run.sequence = std::move(sequence);
      run.Begin(0, lanes_);
    }
  }

  void ToTheEnd() {
    for (auto& [rank, run] : ranks_) Reach(rank, run.queue->Start());
    while (!reached_.empty()) {
      const RankInstruction next = reached_.front();
      reached_.pop_front();
      const RankRun& run = ranks_.at(next.rank);
      const Instruction& instruction =
          run.program().instructions(next.instruction);
      if (SumsNoStep(instruction, run.trains)) {
        Finish(next);
        continue;
      }
      for (const RankInstruction& done : meeting_.Arrive(next, instruction)) {
        Finish(done);
      }
    }
  }

  // A rank that is not done, or -1.
  int Stuck() const {
    for (const auto& [rank, run] : ranks_) {
      if (!run.done()) return rank;
    }
    return -1;
  }

  // Follows the waits from a stuck rank until they come back.
  std::string Cycle(int rank) const {
    std::vector<int> seen;
    std::string text;
    while (rank >= 0 && std::count(seen.begin(), seen.end(), rank) == 0) {
      seen.push_back(rank);
      const auto [words, next] = WaitOf(rank);
      absl::StrAppend(&text, text.empty() ? "" : "; ", words);
      rank = next;
    }
    return text;
  }

 private:
  struct RankRun {
    const Program& program() const { return *sequence[at]; }
    bool done() const { return at + 1 == sequence.size() && queue->done(); }
    void Begin(size_t index, const Lanes& lanes) {
      at = index;
      queue = std::make_unique<ReadyQueue>(program(), lanes);
      trains += program().kind() != Program::FILL ? 1 : 0;
    }

    Sequence sequence;
    size_t at = 0;
    int trains = 0;  // steps begun
    std::unique_ptr<ReadyQueue> queue;
  };

  void Reach(int rank, const std::vector<int>& ready) {
    for (const int i : ready) reached_.push_back({rank, i});
    RankRun& run = ranks_.at(rank);
    while (run.queue->done() && run.at + 1 < run.sequence.size()) {
      run.Begin(run.at + 1, lanes_);
      for (const int i : run.queue->Start()) reached_.push_back({rank, i});
    }
  }
  void Finish(const RankInstruction& done) {
    Reach(done.rank, ranks_.at(done.rank).queue->Finish(done.instruction));
  }

  // What the rank waits for across ranks, in words, and the next rank to ask.
  std::pair<std::string, int> WaitOf(int rank) const {
    const auto run = ranks_.find(rank);
    if (run == ranks_.end() || run->second.done()) {
      return {absl::StrCat("rank ", rank, " has nothing more to run"), -1};
    }
    for (const ReadyQueue::LaneHead& head : run->second.queue->Heads()) {
      if (!head.running) continue;
      const Instruction& instruction =
          run->second.program().instructions(head.instruction);
      const std::vector<int> missing = meeting_.MissingFor(rank, instruction);
      if (missing.empty()) continue;
      return {absl::StrCat("rank ", rank, " waits in ",
                           InstructionText(instruction), " (",
                           NameOfLane(lanes_, head.lane), " lane) for rank ",
                           absl::StrJoin(missing, ", ")),
              missing.front()};
    }
    return {absl::StrCat("rank ", rank, " has started nothing"), -1};
  }

  const Lanes& lanes_;
  Meeting meeting_;
  std::map<int, RankRun> ranks_;
  std::deque<RankInstruction> reached_;
};

}  // namespace

absl::Status CheckWaits(const Plan& plan) {
  const RankClasses classes(plan);
  for (const Program::Kind kind :
       {Program::FILL, Program::TRAIN, Program::VALIDATE, Program::CHECKPOINT,
        Program::REPORT, Program::KEEP}) {
    RETURN_IF_ERROR(CheckSameOrder(plan, classes, kind));
    RETURN_IF_ERROR(CheckTransfers(plan, classes, kind));
    Run run(plan, classes, kind);
    run.ToTheEnd();
    const int stuck = run.Stuck();
    if (stuck < 0) continue;
    return ProgramFault({.rank = stuck, .kind = kind},
                        absl::StrCat("never ends: ", run.Cycle(stuck)));
  }
  return CheckJoined(plan);
}

}  // namespace troupe
