#include <set>
#include <sstream>

#include "clients/cli/command.h"
#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

TEST(CommandTable, EveryCommandHasItsOwnNameAndHelp) {
  std::set<std::string> names;
  for (const CommandRow& row : CommandTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    std::istringstream words(row.name);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    arguments.push_back("--help");
    const CommandOutcome outcome = RunCommand(arguments);
    EXPECT_EQ(outcome.code, 0) << row.name;
    EXPECT_NE(outcome.out.find(row.summary), std::string::npos) << row.name;
  }
  EXPECT_EQ(names.size(), 22);
}

}  // namespace
}  // namespace troupe
