#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/write_file.h"
#include "clients/gantt/chart.h"
#include "clients/gantt/chrome_trace.h"
#include "clients/gantt/svg.h"
#include "clients/gantt/text.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Trace final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("JOB", job_, kJobHelp);
    flags.Integer("--step", step_, {0, std::numeric_limits<int64_t>::max()},
                  {.value = "N", .text = "The step [the last traced one]"});
    flags.Choice("--format", format_, {"text", "svg", "chrome"},
                 "text, svg, or chrome (for ui.perfetto.dev) [text]");
    flags.Text("--out", out_, {.value = "FILE", .text = "Write to a file"});
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const int64_t id, FindJob(*client, job_));
    ASSIGN_OR_RETURN(const GetTimelineResponse timeline,
                     client->Timeline({.id = id, .step = step_}));
    const std::string drawn = Draw(timeline, console);
    if (out_.empty()) {
      console.out << drawn;
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(WriteFile({.path = out_, .content = drawn}));
    console.out << out_ << "\n";
    return absl::OkStatus();
  }

 private:
  // Measured over predicted, where there are both.
  std::string Draw(const GetTimelineResponse& timeline,
                   const Console& console) const {
    const ChartOptions options = {
        .stages = {timeline.stages().begin(), timeline.stages().end()},
        .merge_units = format_ != "chrome"};
    std::vector<Chart> charts;
    if (timeline.has_measured()) {
      charts.push_back(LayOut(timeline.measured(), options));
    }
    if (timeline.has_predicted()) {
      charts.push_back(LayOut(timeline.predicted(), options));
    }
    if (format_ == "svg") return ChartSvg(charts);
    if (format_ == "chrome") return ChromeTrace(charts);
    return ChartText(charts, console.width);
  }

  std::string job_;
  int64_t step_ = 0;
  std::string format_ = "text";
  std::string out_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeTrace() { return std::make_unique<Trace>(); }

}  // namespace troupe
