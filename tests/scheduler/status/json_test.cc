#include "scheduler/status/json.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/scheduler.pb.h"
#include "proto/status.pb.h"

namespace troupe {
namespace {

TEST(Json, NumbersAreNumbersAndNamesAreTheProtos) {
  JobStatus status;
  status.set_id((int64_t{1} << 53) - 1);
  status.set_name("a \"quoted\"\n name");
  status.set_state(RUNNING);
  status.mutable_last_step()->set_loss(0.1);
  status.mutable_last_step()->set_grad_norm(
      std::numeric_limits<double>::infinity());
  status.add_workers("w0");
  const auto json = nlohmann::json::parse(ToJson(status));
  EXPECT_EQ(json["id"], (int64_t{1} << 53) - 1);
  EXPECT_EQ(json["name"], "a \"quoted\"\n name");
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(json["steps_total"], 0) << "zeros are there";
  EXPECT_EQ(json["last_step"]["loss"], 0.1);
  EXPECT_TRUE(json["last_step"]["grad_norm"].is_null());
  EXPECT_EQ(json["last_step"].count("validation_loss"), 0u) << "not set";
  EXPECT_EQ(json["workers"], nlohmann::json::array({"w0"}));
  EXPECT_EQ(json["checkpoints"], nlohmann::json::array());
}

TEST(Json, DoublesReadBackTheSame) {
  for (const double value : {0.1, 1.0 / 3, 1e-300, 2.5, -0.0, 1e22}) {
    StepRecord step;
    step.set_loss(value);
    EXPECT_EQ(nlohmann::json::parse(ToJson(step))["loss"].get<double>(), value);
  }
}

TEST(Json, BytesAndWhatIsNoText) {
  GenerateResponse response;
  response.set_text(std::string("\0\xff", 2));
  EXPECT_EQ(nlohmann::json::parse(ToJson(response))["text"], "AP8=");
  EXPECT_EQ(JsonString("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(ToJson(ListJobsRequest()), "{}");
}

}  // namespace
}  // namespace troupe
