//! Backends in parts.

/// Parts of `count` by demand, for those who stay at least `floor` each: whole numbers that are `count` together, and as they come out.
pub(super) fn shares(count: usize, demand: &[f64], stays: &[bool], floor: usize) -> (Vec<usize>, Vec<f64>) {
    let (mut fixed, mut parts) = (vec![false; demand.len()], vec![0.0; demand.len()]);
    // Who would have less than the floor has that, and the others share the rest.
    loop {
        let taken = fixed.iter().filter(|fixed| **fixed).count() * floor;
        let open = |node: usize| stays[node] && !fixed[node];
        let whole: f64 = (0..demand.len()).filter(|node| open(*node)).map(|node| demand[node]).sum();
        let number = (0..demand.len()).filter(|node| open(*node)).count() as f64;
        let rest = count.saturating_sub(taken) as f64;
        for node in 0..demand.len() {
            parts[node] = match (stays[node], fixed[node]) {
                (false, _) => 0.0,
                (true, true) => floor as f64,
                (true, false) if whole > 0.0 => rest * demand[node] / whole,
                (true, false) => rest / number,
            };
        }
        let lows: Vec<usize> =
            (0..demand.len()).filter(|node| open(*node) && parts[*node] < floor as f64).collect();
        if lows.is_empty() {
            break;
        }
        lows.into_iter().for_each(|node| fixed[node] = true);
    }
    let mut whole: Vec<usize> = parts.iter().map(|part| *part as usize).collect();
    let mut by_rest: Vec<usize> = (0..parts.len()).filter(|node| stays[*node]).collect();
    by_rest.sort_by(|one, other| parts[*other].fract().total_cmp(&parts[*one].fract()));
    let left = count.saturating_sub(whole.iter().sum());
    by_rest.iter().cycle().take(if by_rest.is_empty() { 0 } else { left }).for_each(|node| whole[*node] += 1);
    (whole, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_go_by_demand_and_leave_nobody_without() {
        let of = |count, demand: &[f64], floor| shares(count, demand, &vec![true; demand.len()], floor).0;
        assert_eq!(of(100, &[10.0, 10.0, 20.0], 12), [25, 25, 50]);
        assert_eq!(of(100, &[50.0, 5.0, 5.0, 5.0, 5.0], 12), [52, 12, 12, 12, 12]);
        assert_eq!(of(10, &[1.0, 1.0, 1.0], 3), [4, 3, 3]);
        assert_eq!(of(7, &[0.0, 0.0], 2), [4, 3]);
        assert_eq!(shares(10, &[0.0, 3.0, 1.0], &[false, true, true], 2).0, [0, 8, 2]);
        assert_eq!(shares(10, &[], &[], 2).0, Vec::<usize>::new());
    }
}
