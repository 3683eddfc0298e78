// A worker as the cluster sees it, in a simulation: it carries out what it is
// told, a message or a step at a time, unless it hangs or is stubborn; now and
// then it fails.
#ifndef TROUPE_TESTS_FAULTS_SIMULATED_WORKER_H_
#define TROUPE_TESTS_FAULTS_SIMULATED_WORKER_H_

#include <deque>
#include <optional>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "proto/worker.pb.h"

namespace troupe {

struct SimulatedWorker {
  struct Seat {
    Assignment start;
    int64_t step = 0;
    bool ready = false;
  };
  std::string name;
  bool hangs = false;     // says nothing more
  bool stubborn = false;  // is alive, but does nothing that it is told
  std::optional<Seat> seat;
  std::deque<SchedulerMessage> inbox;
  std::deque<WorkerMessage> outbox;

  // One piece of its work.
  void Work(std::mt19937& random) {
    if (hangs) return;
    Beat(random, *outbox.emplace_back().mutable_heartbeat());
    if (stubborn) return;
    if (!inbox.empty()) {
      Obey(inbox.front(), random);
      inbox.pop_front();
      return;
    }
    if (!seat.has_value()) return;
    WorkerMessage message;
    if (!seat->ready) {
      *message.mutable_rank_ready()->mutable_ref() = seat->start.ref();
      message.mutable_rank_ready()->set_first_step(1);
      outbox.push_back(message);
      seat->ready = true;
    } else if (seat->step < seat->start.plan().job().training().steps()) {
      *message.mutable_step()->mutable_ref() = seat->start.ref();
      message.mutable_step()->mutable_record()->set_step(++seat->step);
      outbox.push_back(message);
      if (random() % 40 == 0) End(false, "bad luck", random);
    } else {
      End(true, "", random);
    }
  }

  // Says anything of where it is.
  void Beat(std::mt19937& random, Heartbeat& heartbeat) {
    if (!seat.has_value()) return;
    const auto draw = [&](int below) {
      return static_cast<int>(random() % below);
    };
    RankProgress& progress = *heartbeat.mutable_progress();
    *progress.mutable_ref() = seat->start.ref();
    progress.set_program(static_cast<Program::Kind>(draw(4)));
    progress.set_step(seat->step + draw(2));
    progress.set_step_seconds(draw(30));
    for (int lanes = draw(4); lanes > 0; --lanes) {
      LaneProgress& lane = *progress.add_lanes();
      lane.set_lane(static_cast<Lane>(1 + draw(4)));
      lane.set_running(draw(2) == 0);
      lane.mutable_waits_for()->set_lane(static_cast<Lane>(1 + draw(4)));
      if (draw(2) == 0) lane.mutable_current()->set_group(draw(3) - 1);
      if (draw(2) == 0) lane.mutable_current()->set_peer(draw(5) - 1);
    }
  }

  void End(bool ok, const std::string& error, std::mt19937& random) {
    WorkerMessage message;
    *message.mutable_ended()->mutable_ref() = seat->start.ref();
    message.mutable_ended()->set_ok(ok);
    message.mutable_ended()->set_error(error);
    message.mutable_ended()->set_step(seat->step);
    if (!ok && random() % 2 == 0) message.mutable_ended()->set_missing_rank(0);
    outbox.push_back(message);
    seat.reset();
  }

  void Obey(const SchedulerMessage& message, std::mt19937& random) {
    if (message.has_start()) {
      EXPECT_FALSE(seat.has_value()) << name << " was given a second rank";
      seat.emplace().start = message.start();
    } else if (message.has_stop() && seat.has_value() &&
               seat->start.ref().job() == message.stop().ref().job()) {
      End(random() % 2 == 0, "stopped", random);
    } else if (message.has_generate()) {
      WorkerMessage piece;
      piece.mutable_generated()->set_request(message.generate().request());
      piece.mutable_generated()->set_done(true);
      outbox.push_back(piece);
    }
  }
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_SIMULATED_WORKER_H_
