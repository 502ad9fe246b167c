//! Well-known places and their time zones.

use super::call::Place;

/// Returns the place with this name and its time zone. For an unknown name, the name is used as the
/// time zone, and the `time` tool fails if there is no such zone.
pub(super) fn find(name: &str) -> Place {
    let known = PLACES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let (name, zone) = known.copied().unwrap_or((name, name));
    Place { name: name.to_owned(), zone: Some(zone.to_owned()) }
}

/// Returns a place without a time zone, for which the server uses its own.
pub(super) fn here() -> Place {
    Place { name: "UTC".to_owned(), zone: None }
}

pub(super) fn is_known(name: &str) -> bool {
    PLACES.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

const PLACES: &[(&str, &str)] = &[
    ("Amsterdam", "Europe/Amsterdam"),
    ("Athens", "Europe/Athens"),
    ("Auckland", "Pacific/Auckland"),
    ("Bangkok", "Asia/Bangkok"),
    ("Barcelona", "Europe/Madrid"),
    ("Beijing", "Asia/Shanghai"),
    ("Berlin", "Europe/Berlin"),
    ("Bogota", "America/Bogota"),
    ("Boston", "America/New_York"),
    ("Brussels", "Europe/Brussels"),
    ("Buenos Aires", "America/Argentina/Buenos_Aires"),
    ("Cairo", "Africa/Cairo"),
    ("Cape Town", "Africa/Johannesburg"),
    ("Chicago", "America/Chicago"),
    ("Copenhagen", "Europe/Copenhagen"),
    ("Delhi", "Asia/Kolkata"),
    ("Denver", "America/Denver"),
    ("Dubai", "Asia/Dubai"),
    ("Dublin", "Europe/Dublin"),
    ("France", "Europe/Paris"),
    ("Germany", "Europe/Berlin"),
    ("Helsinki", "Europe/Helsinki"),
    ("Hong Kong", "Asia/Hong_Kong"),
    ("Honolulu", "Pacific/Honolulu"),
    ("India", "Asia/Kolkata"),
    ("Istanbul", "Europe/Istanbul"),
    ("Jakarta", "Asia/Jakarta"),
    ("Japan", "Asia/Tokyo"),
    ("Johannesburg", "Africa/Johannesburg"),
    ("Karachi", "Asia/Karachi"),
    ("Kathmandu", "Asia/Kathmandu"),
    ("Kyiv", "Europe/Kyiv"),
    ("Lagos", "Africa/Lagos"),
    ("Lima", "America/Lima"),
    ("Lisbon", "Europe/Lisbon"),
    ("London", "Europe/London"),
    ("Los Angeles", "America/Los_Angeles"),
    ("Madrid", "Europe/Madrid"),
    ("Manila", "Asia/Manila"),
    ("Melbourne", "Australia/Melbourne"),
    ("Mexico City", "America/Mexico_City"),
    ("Milan", "Europe/Rome"),
    ("Montreal", "America/Toronto"),
    ("Moscow", "Europe/Moscow"),
    ("Mumbai", "Asia/Kolkata"),
    ("Munich", "Europe/Berlin"),
    ("Nairobi", "Africa/Nairobi"),
    ("New York", "America/New_York"),
    ("Oslo", "Europe/Oslo"),
    ("Paris", "Europe/Paris"),
    ("Prague", "Europe/Prague"),
    ("Reykjavik", "Atlantic/Reykjavik"),
    ("Rio de Janeiro", "America/Sao_Paulo"),
    ("Rome", "Europe/Rome"),
    ("San Francisco", "America/Los_Angeles"),
    ("Santiago", "America/Santiago"),
    ("Sao Paulo", "America/Sao_Paulo"),
    ("Seattle", "America/Los_Angeles"),
    ("Seoul", "Asia/Seoul"),
    ("Shanghai", "Asia/Shanghai"),
    ("Singapore", "Asia/Singapore"),
    ("Stockholm", "Europe/Stockholm"),
    ("Sydney", "Australia/Sydney"),
    ("Taipei", "Asia/Taipei"),
    ("Tehran", "Asia/Tehran"),
    ("Tel Aviv", "Asia/Jerusalem"),
    ("Tokyo", "Asia/Tokyo"),
    ("Toronto", "America/Toronto"),
    ("UK", "Europe/London"),
    ("Vancouver", "America/Vancouver"),
    ("Vienna", "Europe/Vienna"),
    ("Warsaw", "Europe/Warsaw"),
    ("Washington", "America/New_York"),
    ("Zurich", "Europe/Zurich"),
];
