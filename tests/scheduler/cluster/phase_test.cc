#include "scheduler/cluster/phase.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int kIntents = INTENT_CANCEL + 1;

TEST(Phases, AnEventLeadsToOnePhase) {
  int number = 0;
  for (const PhaseEdge& edge : PhaseEdges()) {
    EXPECT_LE(edge.least, edge.most) << EdgeName(edge);
    for (int intent = 0; intent < kIntents; ++intent) {
      const auto meant = static_cast<JobIntent>(intent);
      const bool takes = edge.least <= meant && meant <= edge.most;
      const int taken = NextPhaseEdge(edge.from, meant, edge.event);
      EXPECT_EQ(taken == number, takes)
          << EdgeName(edge) << " with the intent to " << IntentName(meant);
    }
    ++number;
  }
}

TEST(Phases, AllButTheEndAreEnteredAndLeft) {
  std::set<JobPhase> entered, left;
  for (const PhaseEdge& edge : PhaseEdges()) {
    entered.insert(edge.to);
    left.insert(edge.from);
  }
  for (int phase = PHASE_QUEUED; phase <= PHASE_ENDED; ++phase) {
    const auto one = static_cast<JobPhase>(phase);
    EXPECT_EQ(entered.count(one), 1u) << PhaseName(one);
    EXPECT_EQ(left.count(one), one == PHASE_ENDED ? 0u : 1u) << PhaseName(one);
  }
}

bool HasRun(JobPhase phase) {
  return phase != JOB_PHASE_UNSPECIFIED && phase != PHASE_QUEUED &&
         phase != PHASE_PLANNED && phase != PHASE_ENDED;
}

// Else a worker would stay with a job that is over, or in the queue.
TEST(Phases, WhereARunEndsItsWorkersAreFree) {
  for (const PhaseEdge& edge : PhaseEdges()) {
    const bool frees = edge.effect == PhaseEffect::kFreeWorkers ||
                       edge.effect == PhaseEffect::kForgetRanks;
    EXPECT_EQ(frees, HasRun(edge.from) && !HasRun(edge.to)) << EdgeName(edge);
  }
}

TEST(Phases, AnAttemptIsStoredBeforeAnybodyHearsOfIt) {
  for (const PhaseEdge& edge : PhaseEdges()) {
    EXPECT_EQ(edge.effect == PhaseEffect::kStoreStart, edge.to == PHASE_STORING)
        << EdgeName(edge);
    EXPECT_EQ(edge.effect == PhaseEffect::kHandOut,
              edge.event == PhaseEvent::kStored)
        << EdgeName(edge);
    const bool heard = edge.from != PHASE_STORING;
    EXPECT_EQ(edge.effect == PhaseEffect::kStopRanks,
              edge.to == PHASE_STOPPING && HasRun(edge.from) && heard)
        << EdgeName(edge);
  }
}

TEST(Phases, WhatIsNotListedDoesNotHappen) {
  EXPECT_EQ(NextPhaseEdge(PHASE_ENDED, INTENT_RUN, PhaseEvent::kStopped), -1);
  EXPECT_EQ(NextPhaseEdge(PHASE_QUEUED, INTENT_RUN, PhaseEvent::kAllReady), -1);
}

// To write it anew, put what this test prints into the page.
TEST(Phases, ThePageShowsTheTable) {
  std::stringstream page;
  page << std::ifstream("docs/recovery.md").rdbuf();
  const std::string drawing = absl::StrCat("```mermaid\n", DrawPhases(), "```");
  EXPECT_NE(page.str().find(drawing), std::string::npos)
      << "docs/recovery.md does not have this drawing:\n"
      << drawing;
}

}  // namespace
}  // namespace troupe
