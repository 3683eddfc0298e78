// Runs the programs of a plan with virtual time, one rank of each class for all
// of it (proto/plan/rank_classes.h). Each rank's ReadyQueue says
// what may start, Meeting what must come together, a function how long it
// takes, Processor how long that is where ranks share one, or their links and
// adapters. A rank goes on to
// its next program when its last one is done, whatever the others do: between
// programs there is no barrier but what instructions wait for.
#ifndef TROUPE_SCHEDULER_SIMULATE_RUN_PROGRAMS_H_
#define TROUPE_SCHEDULER_SIMULATE_RUN_PROGRAMS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/rank_classes.h"
#include "scheduler/simulate/adapters.h"
#include "scheduler/simulate/seats.h"
#include "scheduler/simulate/traffic.h"

namespace troupe {

// What an instruction takes once it runs, which it does when all that it meets
// have come.
struct Effort {
  int64_t compute_ns = 0;  // with as many cores as its rank wants
  int64_t other_ns = 0;    // whatever else runs: latencies, waits
  // While bytes move between ranks, and for how much of that each link of its
  // rank is full, where nothing else uses them.
  int64_t wire_ns = 0;
  OnLinks links_ns = {};
  // That its rank sends to other hosts, and receives from them.
  double out_bytes = 0;
  double in_bytes = 0;
};
using InstructionEffort =
    std::function<Effort(int rank, const Instruction& instruction)>;

struct RunOptions {
  Program::Kind kind = Program::TRAIN;
  // Run once before, on ranks that have it.
  Program::Kind first = Program::KIND_UNSPECIFIED;
  Seats seats;  // empty: every rank has a processor of its own
  AdapterUses adapters;
  int runs_max = 1;
  // Asked when the last rank has finished a run, with the times at which that
  // was so for each; true ends the simulation before runs_max.
  std::function<bool(const std::vector<int64_t>& ends)> is_enough;
};

// An instruction in the last run that all ranks have finished. Times in ns,
// since that run began on the rank where it began first.
struct InstructionTimes {
  int64_t start = 0;  // it holds its lane from here on,
  int64_t runs = 0;   // and runs from here on: all that it meets have come
  int64_t end = 0;
};
struct RankTimes {
  int rank = 0;
  std::vector<InstructionTimes> instructions;  // of the program, in its order
};
struct ProgramsRun {
  std::vector<int64_t> ends;  // of each run: when the last rank was done
  // First ranks of classes, those that have the program, ascending.
  std::vector<RankTimes> ranks;
};

// REQUIRES CheckPrograms(plan).
ProgramsRun RunPrograms(const Plan& plan, const RankClasses& classes,
                        const InstructionEffort& effort,
                        const RunOptions& options);

// Every rank is a class of its own.
RankClasses EachRank(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_RUN_PROGRAMS_H_
