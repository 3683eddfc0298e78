// The status page as Chromium shows it, with a job on a pipeline of eight.
#include "scheduler/status/page.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "clients/gantt/chart.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "scheduler/cluster/describe.h"
#include "scheduler/status/api.h"
#include "scheduler/status/content_policy.h"
#include "tests/browser/chromium.h"
#include "tests/scheduler/status/made_up_cluster.h"

namespace troupe {
namespace {

using nlohmann::json;

// The page measures itself once it shows a job's step.
constexpr char kWhenDrawn[] =
    "const errors = []; addEventListener('error', e => errors.push(e.message));"
    "const timer = setInterval(() => {"
    "  const charts = [...document.querySelectorAll('svg.gantt')]"
    "    .filter(svg => svg.querySelector('g.compute'));"
    "  if (!charts.length) return;"
    "  clearInterval(timer);"
    "  const page = document.documentElement;"
    "  leaveReport({ errors, text: document.getElementById('gantt').innerText,"
    "    memory: document.getElementById('memory').innerText,"
    "    sample: document.getElementById('sample').innerText,"
    "    wide: page.scrollWidth - page.clientWidth,"
    "    points: curves.length, steps: curves.at(-1).last,"
    "    jobs: document.querySelectorAll('#jobs tr[data-id]').length,"
    "    pager: document.querySelectorAll('#jobs button').length,"
    "    charts: measureCharts(charts) });"
    "}, 100);";

// What it shows when the scheduler has changed under it.
constexpr char kWhenRestarted[] =
    "const errors = []; addEventListener('error', e => errors.push(e.message));"
    "let first = 0;"
    "const timer = setInterval(() => {"
    "  first = first || (shown && began);"
    "  if (!first || began === first || !shown || !events.length) return;"
    "  clearInterval(timer);"
    "  leaveReport({ errors, steps: curves.at(-1).last,"
    "    events: events.length });"
    "}, 100);";

std::string PageThatMeasuresItself(const char* when) {
  std::ifstream file("tests/browser/measure.js");
  std::stringstream script;
  script << file.rdbuf();
  return absl::StrReplaceAll(
      kPageHtml, {{"</body>", absl::StrCat("<script>", script.str(), when,
                                           "</script></body>")}});
}

// Serves the page and the API as the scheduler does. With `next`, that one
// takes its place once the page asks for what is new.
class PageServer {
 public:
  explicit PageServer(const ClusterHost& host,
                      const ClusterHost* next = nullptr) {
    server_.Get("/", [next](const httplib::Request&,
                            httplib::Response& response) {
      const std::string page =
          PageThatMeasuresItself(next == nullptr ? kWhenDrawn : kWhenRestarted);
      response.set_header("Content-Security-Policy", ContentPolicy(page));
      response.set_content(page, "text/html; charset=utf-8");
    });
    server_.Get(
        "/api/v1(/.*)", [this, &host, next](const httplib::Request& request,
                                            httplib::Response& response) {
          const auto number = [&request](const char* name) {
            return std::atoll(request.get_param_value(name).c_str());
          };
          if (next != nullptr && number("from") > 0) restarted_ = true;
          const auto answer = ApiAnswer(
              restarted_ ? *next : host, std::string(request.matches[1]),
              {.from = number("from"),
               .stride = number("stride"),
               .offset = number("offset"),
               .limit = number("limit")},
              absl::FromUnixSeconds(restarted_ ? 2000 : 1000));
          if (!answer.ok()) {
            response.status = 404;
            return;
          }
          response.set_content(*answer, "application/json");
        });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~PageServer() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return absl::StrCat("http://127.0.0.1:", port_); }

 private:
  std::atomic<bool> restarted_ = false;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

// "338 ms, bubble 33.1 %", as the page writes it of a timeline.
std::string Figures(const Timeline& timeline, const GetTimelineResponse& all) {
  const Chart chart =
      LayOut(timeline, {.stages = {all.stages().begin(), all.stages().end()}});
  return absl::StrFormat("%.0f ms, bubble %.1f %%", chart.step_seconds * 1e3,
                         chart.bubble * 100);
}

TEST(StatusPage, ShowsTheStepOfAPipelineOfEight) {
  MadeUpCluster made_up(nullptr, /*ranks=*/8);
  const PageServer server(made_up.host);
  const char* kept = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const std::string screenshot = absl::StrCat(
      kept != nullptr ? kept : std::getenv("TEST_TMPDIR"), "/page.png");
  const auto shown = ReportOf({.url = server.url(),
                               .width = 1400,
                               .height = 3200,
                               .screenshot = screenshot});
  ASSERT_TRUE(shown.ok()) << shown.status();
  const json& report = *shown;
  EXPECT_TRUE(report["errors"].empty()) << report["errors"].dump();
  EXPECT_LE(report["wide"], 0) << "the page itself does not scroll sideways";
  const std::string text = report["text"];
  EXPECT_NE(text.find("measured, step 120"), std::string::npos) << text;
  EXPECT_NE(text.find("predicted"), std::string::npos) << text;
  EXPECT_NE(text.find("bubble"), std::string::npos) << text;
  const std::string sample = report["sample"];
  EXPECT_NE(sample.find("after step 100"), std::string::npos) << sample;
  EXPECT_NE(sample.find("Once <b>upon a time"), std::string::npos)
      << "what the model writes is text, and no HTML: " << sample;
  const std::string memory = report["memory"];
  EXPECT_NE(memory.find("82 MiB of 200 MiB"), std::string::npos)
      << "each tier has a budget of its own: " << memory;
  // The page's script and clients/gantt see the same in a timeline.
  GetTimelineResponse timelines;
  GetTimelineRequest request;
  request.set_id(made_up.running().value());
  ASSERT_TRUE(
      TimelineOf(ShownByHost(made_up.host), request, timelines).ok());
  for (const Timeline* timeline :
       {&timelines.measured(), &timelines.predicted()}) {
    const std::string figures = Figures(*timeline, timelines);
    EXPECT_NE(text.find(figures), std::string::npos) << figures << "\n" << text;
  }
  ASSERT_EQ(report["charts"].size(), 2);
  for (const json& chart : report["charts"]) {
    EXPECT_EQ(chart["compute_rows"], 8);
    EXPECT_EQ(chart["passes"], 2 * 8 * 16);
    EXPECT_EQ(chart["pass_labels"], 2 * 8 * 16);
    EXPECT_GT(chart["critical"], 10);
    EXPECT_TRUE(chart["outside"].empty()) << chart["outside"].dump(1);
    EXPECT_TRUE(chart["overlapping"].empty()) << chart["overlapping"].dump(1);
    EXPECT_TRUE(chart["clipped"].empty()) << chart["clipped"].dump(1);
  }
  EXPECT_GT(std::filesystem::file_size(screenshot), 50'000);
}

// A tab that stays open while a scheduler with another state takes the port.
TEST(StatusPage, ForgetsWhatTheSchedulerBeforeSaid) {
  MadeUpCluster before(nullptr, /*ranks=*/4);
  MadeUpCluster after(nullptr, /*ranks=*/4);
  for (int i = 0; i < 100; ++i) before.Step();
  ASSERT_EQ(before.running(), after.running());
  const PageServer server(before.host, &after.host);
  const auto shown =
      ReportOf({.url = server.url(), .width = 1400, .height = 3200});
  ASSERT_TRUE(shown.ok()) << shown.status();
  const json& report = *shown;
  EXPECT_TRUE(report["errors"].empty()) << report["errors"].dump();
  EXPECT_EQ(report["steps"], 120);
  const size_t events = after.host.Read([&](const Cluster& c, absl::Time) {
    return (*c.FindJob(after.running()))->events.size();
  });
  EXPECT_EQ(report["events"], events);
}

// However long a job, the page has a few points of it; and all jobs can be
// reached.
TEST(StatusPage, OfALongJobAndManyItShowsAPart) {
  MadeUpCluster made_up(nullptr, /*ranks=*/4);
  for (int i = 0; i < 3000; ++i) made_up.Step();
  for (int i = 0; i < 60; ++i) made_up.Wait();
  const PageServer server(made_up.host);
  const char* kept = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const auto shown = ReportOf(
      {.url = server.url(),
       .width = 1400,
       .height = 4200,
       .screenshot = absl::StrCat(
           kept != nullptr ? kept : std::getenv("TEST_TMPDIR"), "/long.png")});
  ASSERT_TRUE(shown.ok()) << shown.status();
  const json& report = *shown;
  EXPECT_TRUE(report["errors"].empty()) << report["errors"].dump();
  EXPECT_GT(report["points"], 200);
  EXPECT_LE(report["points"], 512);
  EXPECT_EQ(report["steps"], 3120);
  EXPECT_EQ(report["jobs"], 50);
  EXPECT_EQ(report["pager"], 2);
}

}  // namespace
}  // namespace troupe
