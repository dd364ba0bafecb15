#include "planner/search/column_problem.h"

namespace mergeplan::search {

JumpForm::JumpForm(const Schedule& schedule)
    : sigma_before(schedule.steps() + 1, 0.0),
      over_sigma_before(schedule.steps() + 1, 0.0),
      d_first(schedule.steps()),
      d_last(schedule.steps()),
      over_d_first(schedule.steps()),
      over_d_last(schedule.steps()) {
  const int T = schedule.steps();
  for (Plane* plane : {&d_first, &d_last, &over_d_first, &over_d_last}) plane->Fill(0);
  for (int i = 1; i <= T; ++i) {
    sigma_before[i] = schedule.sigma[i - 1];
    if (i > 1) over_sigma_before[i] = 1 / schedule.sigma[i - 1];
    for (int j = i; j <= T; ++j) {
      const double d = SignalNoiseDeterminant(schedule, i - 1, j);
      d_first[i][j] = d;
      d_last[j][i] = d;
      over_d_first[i][j] = 1 / d;
      over_d_last[j][i] = 1 / d;
    }
  }
}

ColumnProblem::ColumnProblem(const Model& model, int coordinate, const JumpForm* jump_form)
    : steps(model.steps()),
      jump(jump_form),
      child(model.starts_from_child()),
      constant(!model.starts_from_child() || !model.StartOffset(1).empty()),
      leaf(steps + 1, 0.0),
      omg(steps + 1, 0.0),
      slope(steps + 1, 0.0) {
  if (constant) {
    for (auto* table : {&px, &py, &cx, &cy}) table->assign(steps + 1, 0.0);
  }
  for (int t = 1; t <= steps; ++t) {
    const double gamma = model.gamma(t)[coordinate];
    omg[t] = model.one_minus_gamma(t)[coordinate];
    leaf[t] = model.Leaf(t)[coordinate];
    if (jump != nullptr) leaf[t] *= jump->d_first[t][t];
    if (child) slope[t] = model.StartSlope(t)[coordinate];
    if (!constant) continue;
    if (!model.has_schedule()) {
      px[t] = 1;
      cx[t] = model.StartOffset(t)[coordinate];
    } else if (model.init() == Init::kTeacher) {
      px[t] = 1;
      cx[t] = gamma * model.A(t)[coordinate];
    } else {
      const Schedule& schedule = model.schedule();
      const double n = model.n(t)[coordinate];
      px[t] = schedule.alpha[t - 1];
      py[t] = schedule.sigma[t - 1];
      cx[t] = gamma * schedule.alpha[t] * model.lambda()[coordinate] / n;
      cy[t] = gamma * schedule.sigma[t] / n;
    }
  }
}

}  // namespace mergeplan::search
