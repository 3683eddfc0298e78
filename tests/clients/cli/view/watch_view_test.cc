#include "clients/cli/view/watch_view.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

WatchJobResponse Update(const std::string& text) {
  WatchJobResponse update;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &update));
  return update;
}

constexpr char kQueued[] =
    "status { id: 3 name: 'demo' state: QUEUED steps_total: 2"
    " reason: 'waits for 2 workers' }";
constexpr char kRunning[] =
    "status { id: 3 name: 'demo' state: RUNNING steps_total: 2"
    " predicted_step_seconds: 0.5 }"
    "derived { data_parallel_size: 4 micro_batches: 2 tokens_per_step: 8192"
    " parameters: 10800000 }"
    "mesh { axes { name: 'pipeline' size: 1 } axes { name: 'data' size: 4 }"
    " axes { name: 'context' size: 2 } }";
constexpr char kSteps[] =
    "steps { step: 1 loss: 5.5 step_seconds: 1 }"
    "steps { step: 2 loss: 5.25 validation_loss: 5.125 step_seconds: 1"
    " tokens_per_second: 2000 }";
constexpr char kSucceeded[] =
    "status { id: 3 name: 'demo' state: SUCCEEDED steps_total: 2 steps_done: 2"
    " started_unix_ms: 1000 finished_unix_ms: 3000"
    " checkpoints { step: 2 path: '/c/step-2' } }";

TEST(WatchView, TellsTheWholeStoryInAPipe) {
  std::ostringstream out;
  WatchView view(out, {});
  for (const char* text : {kQueued, kQueued, kRunning, kSteps, kSucceeded}) {
    view.Show(Update(text));
  }
  EXPECT_TRUE(view.Finish().ok());
  EXPECT_EQ(
      out.str(),
      "job 3 (demo) waits for 2 workers\n"
      "plan: pipeline 1 x data 4 x context 2, 2 micro-batches a step on each "
      "rank, 8,192 tokens a step, 10.8M parameters, predicted step 500 ms\n"
      "step 1/2  loss 5.5000  0 tok/s  MFU "
      "0.0%  mem 0 B  ETA 0:01\n"
      "step 2/2  loss 5.2500  val 5.1250  2.0k "
      "tok/s  MFU 0.0%  mem 0 B  ETA 0:00\n"
      "job 3 (demo) SUCCEEDED: 2 steps in 0:02, loss 5.2500, validation "
      "loss 5.1250, 1.0k tokens/s\n"
      "checkpoint: /c/step-2\n");
}

// On a line of its own, and harmless.
TEST(WatchView, ShowsTheSampleOfAValidation) {
  for (const bool terminal : {false, true}) {
    std::ostringstream out;
    WatchView view(out, {.terminal = terminal, .width = 80});
    view.Show(Update(kRunning));
    view.Show(
        Update("steps { step: 1 loss: 5.5 validation_loss: 5.25 step_seconds: 1"
               " sample { prompt: 'Once' text: ' upon\\na \\033[2Jtime' } }"
               "steps { step: 2 loss: 5.5 validation_loss: 5.25 step_seconds: 1"
               " sample { prompt: 'Once' error: 'no memory' } }"));
    EXPECT_THAT(out.str(), HasSubstr("sample: Once| upon\\na \\x1b[2Jtime\n"));
    EXPECT_THAT(out.str(), HasSubstr("sample: none: no memory\n"));
  }
}

TEST(WatchView, ShowsAnotherPlanThatTheJobGoesOnWith) {
  std::ostringstream out;
  WatchView view(out, {});
  const std::string running = kRunning;
  std::string narrower = running;
  narrower.replace(narrower.find("'data' size: 4"), 14, "'data' size: 3");
  for (const std::string& text : {running, running, narrower}) {
    view.Show(Update(text));
  }
  EXPECT_THAT(out.str(), HasSubstr("data 4 x context 2, 2 micro-batches"));
  EXPECT_THAT(out.str(), HasSubstr("data 3 x context 2, 2 micro-batches"));
  int plans = 0;
  for (size_t at = 0; (at = out.str().find("plan: ", at)) != std::string::npos;
       ++at) {
    ++plans;
  }
  EXPECT_EQ(plans, 2);
}

// Whether the last steps come with the event or behind it.
TEST(WatchView, TheEndComesBehindTheLastStep) {
  constexpr char kEvents[] =
      "events { unix_ms: 1000 text: 'running' }"
      "events { unix_ms: 3000 text: 'succeeded' }";
  std::ostringstream together;
  {
    WatchView view(together, {});
    view.Show(Update(absl::StrCat(kSucceeded, kEvents, kSteps)));
    EXPECT_TRUE(view.Finish().ok());
  }
  std::ostringstream apart;
  {
    WatchView view(apart, {});
    view.Show(Update(absl::StrCat(kSucceeded, kEvents)));
    view.Show(Update(kSteps));
  }
  for (const std::string& text : {together.str(), apart.str()}) {
    const size_t running = text.find("running");
    const size_t step = text.find("step 2/2");
    const size_t succeeded = text.find("succeeded");
    ASSERT_NE(succeeded, std::string::npos) << text;
    EXPECT_LT(running, step) << text;
    EXPECT_LT(step, succeeded) << text;
    EXPECT_LT(succeeded, text.find("SUCCEEDED")) << text;
  }
}

TEST(WatchView, RedrawsOneLineOnATerminal) {
  std::ostringstream out;
  {
    WatchView view(out, {.terminal = true, .width = 60});
    view.Show(Update(kRunning));
    view.Show(Update("steps { step: 1 loss: 5.5 step_seconds: 1 }"));
    view.Show(Update("events { unix_ms: 0 text: 'hello' }"));
  }
  const std::string bar =
      "[#######--------] step 1/2  loss 5.5000  0 tok/s  ETA 0:01";
  const std::string text = out.str();
  EXPECT_NE(text.find("\r\x1b[K" + bar), std::string::npos) << text;
  // The event goes above the bar, which comes back; the end is a fresh line.
  EXPECT_NE(text.find("\r\x1b[K-  hello\n" + bar + "\n"), std::string::npos)
      << text;
}

TEST(WatchView, SaysInRedWhatIsNotSaved) {
  std::ostringstream out;
  {
    WatchView view(out, {.terminal = true, .width = 60});
    view.Show(Update(
        "status { id: 3 state: RUNNING unsaved: 'ENOSPC' } "
        "events { unix_ms: 0 text: 'the checkpoint could not be written: "
        "ENOSPC' }"));
  }
  EXPECT_NE(out.str().find("-  \x1b[1;31mthe checkpoint could not be written: "
                           "ENOSPC\x1b[0m\n"),
            std::string::npos)
      << out.str();
}

TEST(WatchView, SaysHowItEnded) {
  std::ostringstream out;
  const auto end = [&](const std::string& status) {
    WatchView view(out, {});
    view.Show(Update("status { id: 3 name: 'demo' " + status + " }"));
    return view.Finish();
  };
  EXPECT_EQ(
      end("state: FAILED reason: 'worker-1 was lost in step 7'").message(),
      "job 3 (demo) failed: worker-1 was lost in step 7");
  EXPECT_EQ(end("state: CANCELLED").message(), "job 3 (demo) was cancelled");
  EXPECT_EQ(end("state: RUNNING").code(), absl::StatusCode::kUnavailable);
}

TEST(WatchView, ShowsEventsOnly) {
  std::ostringstream out;
  WatchView view(out, {.steps = false});
  view.Show(Update(kRunning));
  view.Show(Update(kSteps));
  view.Show(Update("events { unix_ms: 0 text: 'hello' }"));
  EXPECT_EQ(out.str(), "-  hello\n");
}

}  // namespace
}  // namespace troupe
