#include "worker/doctor/run_doctor.h"

#include <unistd.h>

#include <sstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

Finding Healthy(const CheckSubject&) { return {.text = "well"}; }
Finding Hanging(const CheckSubject&) {
  while (true) pause();
}

TEST(RunChecks, PrintsALineEach) {
  std::ostringstream out, err;
  const auto port = [](const CheckSubject& subject) {
    return Finding{.state = FindingState::kWarn,
                   .text = std::to_string(subject.port)};
  };
  EXPECT_EQ(RunChecks({{"cores", &Healthy}, {"ports", port}},
                      {.subject = {.port = 7}}, {.out = out, .err = err}),
            0);
  EXPECT_EQ(out.str(),
            "ok     cores             well\n"
            "warn   ports             7\n");
  EXPECT_EQ(err.str(), "");
}

TEST(RunChecks, GoesOnAfterOneThatHangs) {
  std::ostringstream out, err;
  EXPECT_EQ(RunChecks({{"disk", &Hanging}, {"cores", &Healthy}},
                      {.json = true, .limit = absl::Milliseconds(500)},
                      {.out = out, .err = err}),
            1);
  EXPECT_EQ(out.str().rfind("[\n  {\n    \"check\": \"disk\",\n"
                            "    \"state\": \"fail\",\n"
                            "    \"text\": \"no answer within 500ms\",",
                            0),
            0)
      << out.str();
  EXPECT_NE(out.str().find("\"check\": \"cores\""), std::string::npos);
  EXPECT_NE(err.str().find(": disk"), std::string::npos) << err.str();
}

}  // namespace
}  // namespace troupe
