//! How much of what is asked of a node its own backends do: what comes while all of them are full goes to those of others.
//!
//! With few backends all are full more often, so a node that has few of them, as many as its part of the requests, leaves them idler than one that has many: at seven of ten
//! places in use, seven backends do 88 of 100 requests of their node, and seventy do all of it, and those that come from the others too. Found out here is how
//! much they would have if all backends were to be used alike.

/// Beyond so many requests at once chance fills hardly ever more places than there are on average.
const MANY: f64 = 500.0;
/// Looks after which parts do not change any more.
const LOOKS: usize = 30;

/// Of `demand` requests at once on average, those that find one of so many places free: Erlang's loss formula (A. K. Erlang, 1917), which holds however long requests take.
fn kept(demand: f64, places: f64) -> f64 {
    if demand > MANY {
        return demand.min(places);
    }
    let (mut lost, mut number) = (1.0, 1.0);
    while number <= places {
        lost = demand * lost / (number + demand * lost);
        number += 1.0;
    }
    // Between two whole numbers of places it is in between.
    let next = demand * lost / (number + demand * lost);
    demand * (1.0 - lost + (lost - next) * places.fract())
}

/// In which proportions nodes would have backends with so many `places` together, if all were to be used alike where this is asked of them.
pub(super) fn parts(demand: &[f64], places: f64) -> Vec<f64> {
    let whole: f64 = demand.iter().sum();
    if whole <= 0.0 {
        return demand.to_vec();
    }
    let mut parts = demand.to_vec();
    for _ in 0..LOOKS {
        let sum: f64 = parts.iter().sum();
        let next = demand.iter().zip(&parts).map(|(demand, part)| kept(*demand, places * part / sum));
        parts = next.collect();
        if parts.iter().sum::<f64>() <= 0.0 {
            return demand.to_vec();
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 0.01 * other.abs().max(1.0)
    }

    #[test]
    fn few_places_are_all_taken_sooner_than_many() {
        // B(1, 1) = 1/2; B(7, 5) = 0.1205; B(10, 5) = 0.0184.
        assert!(near(kept(1.0, 1.0), 0.5) && near(kept(5.0, 7.0), 4.397) && near(kept(5.0, 10.0), 4.908));
        assert!(near(kept(50.0, 72.0), 50.0) && near(kept(0.0, 3.0), 0.0) && near(kept(3.0, 0.0), 0.0));
        assert!(near(kept(10_000.0, 7_000.0), 7_000.0) && near(kept(600.0, 7_000.0), 600.0));
        let between = kept(5.0, 7.5);
        assert!(kept(5.0, 7.0) < between && between < kept(5.0, 8.0));
    }

    #[test]
    fn parts_are_such_that_all_are_used_alike() {
        let share = |demand: &[f64], places: f64| {
            let parts = parts(demand, places);
            let sum: f64 = parts.iter().sum();
            parts.iter().map(|part| places * part / sum).collect::<Vec<_>>()
        };
        // Alike where as much is asked of all.
        assert!(share(&[10.0; 5], 100.0).iter().all(|part| near(*part, 20.0)));
        // Ten times as much of one as of each other: those four would have seven each by demand.
        let skewed = share(&[50.0, 5.0, 5.0, 5.0, 5.0], 100.0);
        assert!((5.8..6.5).contains(&skewed[1]) && near(skewed.iter().sum(), 100.0), "{skewed:?}");
        let busy: Vec<f64> =
            skewed.iter().zip([50.0, 5.0]).map(|(places, asked)| kept(asked, *places) / places).collect();
        assert!(near(busy[0], busy[1]), "{busy:?}");
        // Where there is little to do all is as it is asked, and where there is too much, too.
        assert!(near(share(&[5.0, 0.5], 1_100.0)[1], 100.0));
        assert!(near(share(&[1_000.0, 3_000.0], 100.0)[0], 25.0));
        assert_eq!(parts(&[0.0, 0.0], 10.0), [0.0, 0.0]);
    }
}
